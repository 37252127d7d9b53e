"""One ``[storage]`` section for the three that touch storage: pyarrow, delta-rs and Spark's S3A.

Also the one place that builds the path of a topic's table.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from reader.config import StorageConfig
from reader.errors import ConfigurationError, UnavailableError
from reader.model import Topic

__all__ = [
    "delta_options",
    "open_directory",
    "open_filesystem",
    "s3a_conf",
    "spark_uri",
    "storage_root",
    "table_uri",
]

_SAFE = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_S3 = ("s3", "s3a")
_TRUE = ("true", "1", "yes")
_PROVIDER = "spark.hadoop.fs.s3a.aws.credentials.provider"

# delta-rs waits for minutes on a dead endpoint by default; a user wants to be told.
_DELTA_PATIENCE = {
    "connect_timeout": "5s",
    "timeout": "60s",
    "max_retries": "5",
    "retry_timeout": "30s",
}


def storage_root(config: StorageConfig) -> str:
    """The storage URI without a trailing slash; local directories as absolute paths.

    Raises ConfigurationError when it is not set.
    """
    uri = config.uri.rstrip("/")
    if not uri:
        raise ConfigurationError(
            "storage.uri is not set", hint="name a directory or s3://bucket/prefix"
        )
    scheme = urlsplit(uri).scheme
    if scheme == "file":
        return urlsplit(uri).path.rstrip("/")
    if len(scheme) > 1:
        return "s3://" + uri.split("://", 1)[1] if scheme in _S3 else uri
    return str(Path(uri).absolute())


def table_uri(config: StorageConfig, topic: Topic) -> str:
    """The URI of the topic's Delta table: ``<root>/<tenant>/<namespace>/<topic>``.

    Every byte outside ``[A-Za-z0-9._-]`` becomes ``~XX`` (``%`` would be decoded by some clients
    and not by others), and so do names of dots only: no name leaves the root or meets another's.
    """
    parts = (_component(part) for part in (topic.tenant, topic.namespace, topic.name))
    return "/".join((storage_root(config), *parts))


def _component(name: str) -> str:
    if set(name) == {"."}:
        return "~2E" * len(name)
    return "".join(chr(b) if b in _SAFE else f"~{b:02X}" for b in name.encode())


def delta_options(config: StorageConfig) -> dict[str, str]:
    """Storage options for delta-rs. Commits are conditional PUTs (``If-None-Match``)."""
    if urlsplit(storage_root(config)).scheme not in _S3:
        return {}
    options = dict(config.options)
    path_style = options.pop("path_style", "true" if "endpoint_url" in options else "false")
    names = {"endpoint_url", "region", "access_key_id", "secret_access_key", "session_token"}
    found = {f"aws_{k}" if k in names else k: v for k, v in options.items()}
    found.setdefault("aws_conditional_put", "etag")
    if "access_key_id" not in options:
        # Else it asks for profiles and roles only where the endpoint is Amazon's.
        found.setdefault("aws_force_credential_load", "true")
    found.setdefault(
        "aws_virtual_hosted_style_request", "false" if path_style.lower() in _TRUE else "true"
    )
    return _DELTA_PATIENCE | found


def open_filesystem(config: StorageConfig) -> tuple[pafs.FileSystem, str]:
    """(filesystem, root path in it) for reading and writing bytes.

    S3 and local directories through pyarrow, any other scheme through fsspec.
    """
    root = storage_root(config)
    parsed = urlsplit(root)
    if parsed.scheme in _S3:
        return _s3(config), root.split("://", 1)[1]
    if not parsed.scheme:
        return pafs.LocalFileSystem(), root
    try:
        import fsspec  # only where a scheme needs it

        inner, path = fsspec.core.url_to_fs(root, **config.options)
    except (ImportError, ValueError) as error:
        raise ConfigurationError(
            f"storage.uri: {parsed.scheme}:// is not supported here",
            hint=f"install the fsspec package for it: {error}",
        ) from error
    return pafs.PyFileSystem(pafs.FSSpecHandler(inner)), path


def open_directory(config: StorageConfig, topic: Topic) -> tuple[pafs.FileSystem, str]:
    """(filesystem, path in it) of the topic's table."""
    filesystem, root = open_filesystem(config)
    return filesystem, root + table_uri(config, topic).removeprefix(storage_root(config))


def _s3(config: StorageConfig) -> pafs.S3FileSystem:
    options = config.options
    endpoint = options.get("endpoint_url")
    parsed = urlsplit(endpoint) if endpoint else None
    try:
        return pafs.S3FileSystem(
            access_key=options.get("access_key_id"),
            secret_key=options.get("secret_access_key"),
            session_token=options.get("session_token"),
            region=options.get("region"),
            endpoint_override=parsed.netloc if parsed else None,
            scheme=parsed.scheme if parsed else "https",
            force_virtual_addressing=options.get(
                "path_style", "true" if endpoint else "false"
            ).lower()
            not in _TRUE,
            connect_timeout=5,
            request_timeout=60,
        )
    except (pa.ArrowException, OSError) as error:
        raise UnavailableError(f"cannot use the storage: {error}") from error


def spark_uri(uri: str) -> str:
    """The same table for Spark: Hadoop's S3 client is named ``s3a``."""
    return "s3a://" + uri.removeprefix("s3://") if uri.startswith("s3://") else uri


def s3a_conf(config: StorageConfig) -> dict[str, str]:
    """Spark settings that give S3A the same endpoint and keys."""
    if not config.uri or urlsplit(storage_root(config)).scheme not in _S3:
        return {}
    options = config.options
    conf: dict[str, str] = {}
    plain = {
        "endpoint_url": "endpoint",
        "region": "endpoint.region",
        "access_key_id": "access.key",
        "secret_access_key": "secret.key",
        "session_token": "session.token",
    }
    for ours, theirs in plain.items():
        if ours in options:
            conf[f"spark.hadoop.fs.s3a.{theirs}"] = options[ours]
    if "session_token" in options:
        conf[_PROVIDER] = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
    elif "access_key_id" not in options:
        # The chain of Amazon's SDKs, as the two others have it: S3A's own knows neither profiles
        # nor web identities.
        conf[_PROVIDER] = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
    if "endpoint_url" in options:
        secure = options["endpoint_url"].startswith("https://")
        conf["spark.hadoop.fs.s3a.connection.ssl.enabled"] = str(secure).lower()
        conf["spark.hadoop.fs.s3a.path.style.access"] = options.get("path_style", "true")
    return conf
