"""S3 and what speaks its protocol: ``s3://bucket/prefix``, with one endpoint for three clients.

Without keys in the options, each client asks the usual chain of Amazon's SDKs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from reader.errors import ConfigurationError, UnavailableError
from reader.storage.base import PATIENCE, Storage, is_true, require_unset

if TYPE_CHECKING:
    from reader.storage.objects import Objects

_PROVIDER = "spark.hadoop.fs.s3a.aws.credentials.provider"

_TOKENS = ("AWS_SESSION_TOKEN", "AWS_TOKEN")  # of a key of the environment, with another's
# Which delta-rs and obstore go by, and pyarrow does not: the last one even before the option.
_ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3")
_DELTA_NAMES = {"endpoint_url", "region", "access_key_id", "secret_access_key", "session_token"}
# It tries 35 times by default, for minutes.
_S3A_PATIENCE = {
    "spark.hadoop.fs.s3a.retry.limit": "4",
    "spark.hadoop.fs.s3a.attempts.maximum": "3",
}
_S3A_NAMES = {
    "endpoint_url": "endpoint",
    "region": "endpoint.region",
    "access_key_id": "access.key",
    "secret_access_key": "secret.key",
    "session_token": "session.token",
}


class S3Storage(Storage):
    """Options reach pyarrow, delta-rs and S3A alike. Commits are ``If-None-Match`` PUTs."""

    OPTIONS = (
        "endpoint_url",
        "region",
        "access_key_id",
        "secret_access_key",
        "session_token",
        "allow_http",
        "path_style",
    )

    def _root(self, uri: str) -> str:
        place = uri.partition("://")[2]
        if not place or place.startswith("/"):
            raise ConfigurationError("storage.uri names no bucket", hint="write s3://bucket/prefix")
        options = self.config.options
        if urlsplit(options.get("endpoint_url", "")).path.rstrip("/"):
            raise ConfigurationError(
                "storage.options.endpoint_url has a path, which pyarrow leaves out",
                hint="write http://host:port, or https://host; the bucket is in storage.uri",
            )
        if "access_key_id" in options and "session_token" not in options:
            require_unset(_TOKENS, "access_key_id")
        require_unset(_ENDPOINTS[2:] if "endpoint_url" in options else _ENDPOINTS, "endpoint_url")
        return f"s3://{place}"

    def _open_filesystem(self) -> tuple[pafs.FileSystem, str]:
        options = self.config.options
        endpoint = options.get("endpoint_url")
        parsed = urlsplit(endpoint) if endpoint else None
        path_style = options.get("path_style", "true" if endpoint else "false")
        try:
            filesystem = pafs.S3FileSystem(
                access_key=options.get("access_key_id"),
                secret_key=options.get("secret_access_key"),
                session_token=options.get("session_token"),
                region=options.get("region"),
                endpoint_override=parsed.netloc if parsed else None,
                scheme=parsed.scheme if parsed else "https",
                force_virtual_addressing=not is_true(path_style),
                connect_timeout=5,
                request_timeout=60,
            )
        except (pa.ArrowException, OSError) as error:
            raise UnavailableError(f"cannot use the storage: {error}") from error
        return filesystem, self.root.split("://", 1)[1]

    def _open_objects(self) -> Objects:
        from reader.storage.objects import Objects  # not where tables are only read
        from reader.storage.stores.obstore_client import ObstoreClient

        options = self.delta_options()
        # What delta-rs has of its own; obstore finds the usual chain by itself.
        options.pop("aws_force_credential_load", None)
        return Objects(ObstoreClient.of_url(self.root, options))

    def delta_options(self) -> dict[str, str]:
        options = dict(self.config.options)
        path_style = options.pop("path_style", "true" if "endpoint_url" in options else "false")
        if "allow_http" in options:
            options["allow_http"] = str(is_true(options["allow_http"])).lower()
        found = {f"aws_{k}" if k in _DELTA_NAMES else k: v for k, v in options.items()}
        found.setdefault("aws_conditional_put", "etag")
        if "access_key_id" not in options:
            # Else it asks for profiles and roles only where the endpoint is Amazon's.
            found.setdefault("aws_force_credential_load", "true")
        found.setdefault(
            "aws_virtual_hosted_style_request", "false" if is_true(path_style) else "true"
        )
        return PATIENCE | found

    def spark_conf(self) -> dict[str, str]:
        options = self.config.options
        conf = dict(_S3A_PATIENCE)
        for ours, theirs in _S3A_NAMES.items():
            if ours in options:
                conf[f"spark.hadoop.fs.s3a.{theirs}"] = options[ours]
        if "session_token" in options:
            conf[_PROVIDER] = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
        elif "access_key_id" not in options:
            # The chain of Amazon's SDKs, as the two others have it: S3A's own knows neither
            # profiles nor web identities.
            conf[_PROVIDER] = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
        if "endpoint_url" in options:
            secure = options["endpoint_url"].startswith("https://")
            conf["spark.hadoop.fs.s3a.connection.ssl.enabled"] = str(secure).lower()
            conf["spark.hadoop.fs.s3a.path.style.access"] = options.get("path_style", "true")
        return conf

    def spark_uri(self, uri: str) -> str:
        """Hadoop's S3 client is named ``s3a``."""
        return "s3a://" + uri.removeprefix("s3://") if uri.startswith("s3://") else uri
