"""Google Cloud Storage: ``gs://bucket/prefix``. Commits are puts for generation 0.

Without credentials in the options: the environment's service account, the application default
credentials, then the machine's metadata server, as object_store has it; Spark's connector is told
what was found.
"""

import json
import os
from pathlib import Path
from typing import Any

from reader.errors import ConfigurationError
from reader.storage.base import PATIENCE, ClientStorage, is_true, require_unset
from reader.storage.stores import StorageClient

_GS = "spark.hadoop.fs.gs."
_DELTA_NAMES = {
    "service_account": "google_service_account",
    "service_account_key": "google_service_account_key",
    "application_credentials": "google_application_credentials",
}
_CREDENTIALS = ("service_account", "service_account_key", "application_credentials", "anonymous")
# As delta-rs and obstore look them up.
_VARIABLES = {
    "service_account": ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH"),
    "service_account_key": ("GOOGLE_SERVICE_ACCOUNT_KEY",),
    "application_credentials": ("GOOGLE_APPLICATION_CREDENTIALS",),
}
# What object_store takes before each, of the environment: application default credentials come
# last, and a path and a key together are an error.
_RIVALS = {
    "service_account": ("service_account_key",),
    "service_account_key": ("service_account",),
    "anonymous": ("service_account",),
    "application_credentials": ("service_account", "service_account_key"),
}
_GCLOUD = "~/.config/gcloud/application_default_credentials.json"
# Without the connector's own defaults, which are "64m" and the like in Hadoop's, and no number.
_CONNECTOR = {
    "impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
    "http.max.retry": "4",  # ten by default: minutes
    "block.size": "67108864",
    "rewrite.max.chunk.size": "536870912",
    "inputstream.inplace.seek.limit": "8388608",
    "inputstream.min.range.request.size": "2097152",
    "outputstream.buffer.size": "8388608",
    "outputstream.pipe.buffer.size": "1048576",
    "outputstream.upload.cache.size": "0",
    "outputstream.upload.chunk.size": "25165824",
}


class GcsStorage(ClientStorage):
    """Options reach delta-rs, obstore and Spark's connector alike."""

    OPTIONS = (
        "endpoint_url",
        "service_account",
        "service_account_key",
        "application_credentials",
        "anonymous",
        "allow_http",
    )

    def _root(self, uri: str) -> str:
        place = uri.partition("://")[2]
        if not place or place.startswith("/"):
            raise ConfigurationError("storage.uri names no bucket", hint="write gs://bucket/prefix")
        options = self.config.options
        given = sorted(set(_CREDENTIALS) & options.keys())
        if not is_true(options.get("anonymous", "true")):
            given.remove("anonymous")
        if len(given) > 1:
            raise ConfigurationError(
                f"storage.options: {' and '.join(given)} are two identities", hint="give one"
            )
        for name in given:
            require_unset((one for rival in _RIVALS[name] for one in _VARIABLES[rival]), name)
        if "endpoint_url" not in options:
            require_unset(("GOOGLE_BASE_URL",), "endpoint_url")
        return f"gs://{place}"

    def _path(self) -> str:
        return self.root.partition("://")[2]

    def _open_client(self) -> StorageClient:
        from reader.storage.stores.obstore_client import ObstoreClient

        return ObstoreClient.of_url(self.root, self.delta_options())

    def delta_options(self) -> dict[str, str]:
        options = self.config.options
        found = {theirs: options[ours] for ours, theirs in _DELTA_NAMES.items() if ours in options}
        if is_true(options.get("anonymous", "")):
            nobody = {"client_email": "", "private_key": "", "private_key_id": ""}
            # To skip the signature alone would still ask for a token.
            found["google_service_account_key"] = json.dumps(nobody | {"disable_oauth": True})
        if "endpoint_url" in options:
            found["google_base_url"] = options["endpoint_url"].rstrip("/")
        if "allow_http" in options:
            found["allow_http"] = str(is_true(options["allow_http"])).lower()
        return PATIENCE | found

    def spark_conf(self) -> dict[str, str]:
        options = self.config.options
        conf = _CONNECTOR | self._spark_identity()
        if "endpoint_url" in options:
            conf["storage.root.url"] = options["endpoint_url"].rstrip("/") + "/"
        return {f"{_GS}{name}": value for name, value in conf.items()}

    def _spark_identity(self) -> dict[str, str]:
        """For the connector, whose own chain has neither keys as text nor gcloud's file."""
        options = self.config.options
        if is_true(options.get("anonymous", "")):
            return {"auth.service.account.enable": "false", "auth.null.enable": "true"}
        identity: dict[str, str] = {n: options[n] for n in _CREDENTIALS if n in options}
        if not identity:
            found = (
                (name, os.environ[variable])
                for name, variables in _VARIABLES.items()
                for variable in variables
                if os.environ.get(variable)
            )
            identity = dict([next(found, ("", ""))])
        if "service_account" in identity:
            return {"auth.service.account.json.keyfile": identity["service_account"]}
        if "service_account_key" in identity:
            return _key(_json("service_account_key", identity["service_account_key"]))
        file = identity.get("application_credentials", "")
        if not file and not Path(_GCLOUD).expanduser().is_file():
            return {}  # the metadata server
        path = Path(file or _GCLOUD).expanduser()
        try:
            text = path.read_text()
        except OSError as error:
            raise ConfigurationError(
                f"cannot read the credentials {path}: {error.strerror}",
                hint="storage.options.application_credentials, or GOOGLE_APPLICATION_CREDENTIALS",
            ) from error
        parsed = _json("application_credentials", text)
        if parsed.get("type") == "authorized_user":
            return {
                "auth.service.account.enable": "false",
                "auth.client.id": str(parsed.get("client_id", "")),
                "auth.client.secret": str(parsed.get("client_secret", "")),
                "auth.refresh.token": str(parsed.get("refresh_token", "")),
            }
        return {"auth.service.account.json.keyfile": str(path)}


def _json(name: str, text: str) -> dict[str, Any]:
    """Raises ConfigurationError, which does not show it."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ConfigurationError(
            f"storage.options: {name} is no JSON object", hint="the text of Google's key file"
        )
    return found


def _key(parsed: dict[str, Any]) -> dict[str, str]:
    if parsed.get("disable_oauth"):
        return {"auth.service.account.enable": "false", "auth.null.enable": "true"}
    return {
        "auth.service.account.email": str(parsed.get("client_email", "")),
        "auth.service.account.private.key.id": str(parsed.get("private_key_id", "")),
        "auth.service.account.private.key": str(parsed.get("private_key", "")),
    }
