"""Azure Blob storage and ADLS Gen2: ``abfss://container@account.dfs.core.windows.net/prefix``.

That form of the URL is the one that delta-rs and Spark share; commits are conditional PUTs of the
Blob API. Without credentials in the options: those that the environment names (as delta-rs has it),
then the machine's managed identity; Spark is told what was found.
"""

import base64
import os
import re
from urllib.parse import urlsplit

from reader.errors import ConfigurationError
from reader.storage.base import PATIENCE, ClientStorage, is_true, require_unset
from reader.storage.stores import StorageClient

_URI = re.compile(
    r"abfss?://(?P<container>[^@/]+)@(?P<account>[a-z0-9]+)\.(?:dfs|blob)\.core\.windows\.net"
    r"(?P<prefix>/.*)?",
    re.IGNORECASE,
)
_DELTA_NAMES = {
    "account_key": "azure_storage_account_key",
    "sas_token": "azure_storage_sas_key",
    "client_id": "azure_storage_client_id",
    "client_secret": "azure_storage_client_secret",
    "tenant_id": "azure_storage_tenant_id",
    "federated_token_file": "azure_federated_token_file",
    "authority_host": "azure_storage_authority_host",
    "endpoint_url": "azure_storage_endpoint",
}
# As delta-rs and obstore look them up.
_VARIABLES = {
    "account_key": ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY"),
    "sas_token": ("AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_SAS_TOKEN"),
    "client_id": ("AZURE_STORAGE_CLIENT_ID", "AZURE_CLIENT_ID"),
    "client_secret": ("AZURE_STORAGE_CLIENT_SECRET", "AZURE_CLIENT_SECRET"),
    "tenant_id": ("AZURE_STORAGE_TENANT_ID", "AZURE_TENANT_ID"),
    "federated_token_file": ("AZURE_FEDERATED_TOKEN_FILE",),
    "authority_host": ("AZURE_STORAGE_AUTHORITY_HOST", "AZURE_AUTHORITY_HOST"),
}
# Each one's options; the first that is complete is taken.
_IDENTITIES = {
    "account_key": ("account_key",),
    "sas_token": ("sas_token",),
    "federated_token_file": ("client_id", "tenant_id", "federated_token_file"),
    "client_secret": ("client_id", "client_secret", "tenant_id"),
}
# What delta-rs, or obstore where it makes tokens, takes before each, of the environment.
_BEARER = ("AZURE_STORAGE_TOKEN",)
_RIVALS = {
    "account_key": (),
    "sas_token": _VARIABLES["account_key"],
    "federated_token_file": (*_VARIABLES["account_key"], *_BEARER),
    "client_secret": (*_VARIABLES["account_key"], *_BEARER, *_VARIABLES["federated_token_file"]),
}
_ENDPOINTS = ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
# Of Spark's client, which tries thirty times by default, for a quarter of an hour; ms.
_PATIENCE = {
    "io.retry.max.retries": "5",
    "io.retry.backoff.interval": "1000",
    "io.retry.min.backoff.interval": "500",
    "io.retry.max.backoff.interval": "5000",
}
_AUTHORITY = "https://login.microsoftonline.com"
_PROVIDERS = "org.apache.hadoop.fs.azurebfs.oauth2."


class AzureStorage(ClientStorage):
    """Options reach delta-rs, obstore and Spark's ABFS alike."""

    OPTIONS = (
        "endpoint_url",
        "account_key",
        "sas_token",
        "client_id",
        "client_secret",
        "tenant_id",
        "federated_token_file",
        "authority_host",
        "allow_http",
    )

    def _root(self, uri: str) -> str:
        match = _URI.fullmatch(uri)
        if match is None:
            raise ConfigurationError(
                "storage.uri names no container of an account",
                hint="write abfss://container@account.dfs.core.windows.net/prefix",
            )
        self._container = match["container"]
        self._account = match["account"].lower()
        self._host = f"{self._account}.dfs.core.windows.net"
        given = [one for one in _IDENTITIES if one in self.config.options]
        if len(given) > 1:
            raise ConfigurationError(
                f"storage.options: {' and '.join(given)} are two identities", hint="give one"
            )
        for one in given:
            require_unset(_RIVALS[one], one)
        if "endpoint_url" not in self.config.options:
            require_unset(_ENDPOINTS, "endpoint_url")
        lacking = set(_IDENTITIES[given[0]]) - self._known().keys() if given else set()
        if lacking:
            raise ConfigurationError(
                f"storage.options: {given[0]} needs {' and '.join(sorted(lacking))} as well"
            )
        return f"abfss://{self._container}@{self._host}{match['prefix'] or ''}"

    def _path(self) -> str:
        return f"{self._container}{urlsplit(self.root).path}"

    def _open_client(self) -> StorageClient:
        from reader.storage.stores.obstore_client import ObstoreClient

        return ObstoreClient.of_url(self.root, self.delta_options(), self._credential())

    def _credential(self) -> dict[str, str] | None:
        """A key or a signature, for obstore: whatever the environment has, this is the one.

        Raises ConfigurationError, which does not show it: obstore takes it without a look.
        """
        found = self._identity()
        if "account_key" in found:
            try:
                base64.b64decode(found["account_key"], validate=True)
            except ValueError:
                raise ConfigurationError(
                    "the account key for the storage is no base64",
                    hint="storage.options.account_key, or AZURE_STORAGE_ACCOUNT_KEY",
                ) from None
            return {"access_key": found["account_key"]}
        if "sas_token" in found:
            token = found["sas_token"].removeprefix("?")
            if not all("=" in pair for pair in token.split("&")):
                raise ConfigurationError(
                    "the signature for the storage is no sv=…&sig=…",
                    hint="storage.options.sas_token, or AZURE_STORAGE_SAS_TOKEN",
                )
            return {"sas_token": token}
        return None

    def _known(self) -> dict[str, str]:
        """What settings and environment say of who we are, by the options' names."""
        options = {n: v for n, v in self.config.options.items() if n in _VARIABLES}
        named = any(one in options for one in _IDENTITIES)
        found = dict(options)
        for name, variables in _VARIABLES.items():
            value = next((os.environ[one] for one in variables if os.environ.get(one)), "")
            # The settings' own identity may leave its less secret half to the environment.
            if value and name not in found and not (named and name in _IDENTITIES):
                found[name] = value
        return found

    def _identity(self) -> dict[str, str]:
        """The options of one identity."""
        found = self._known()
        for needed in _IDENTITIES.values():
            if all(one in found for one in needed):
                return {n: found[n] for n in (*needed, "authority_host") if n in found}
        return {n: found[n] for n in ("client_id", "tenant_id") if n in found}

    def delta_options(self) -> dict[str, str]:
        options = self.config.options
        given = self._identity()
        if "endpoint_url" in options:
            given["endpoint_url"] = options["endpoint_url"].rstrip("/")
        found = {theirs: given[ours] for ours, theirs in _DELTA_NAMES.items() if ours in given}
        found["azure_storage_account_name"] = self._account
        if "allow_http" in options:
            found["allow_http"] = str(is_true(options["allow_http"])).lower()
        return PATIENCE | found

    def spark_conf(self) -> dict[str, str]:
        options = self.config.options
        conf = {
            # Java's own HTTP and TLS: no jars beside pyspark's.
            "networking.library": "JDK_HTTP_URL_CONNECTION",
            "ssl.channel.mode": "Default_JSSE",
            **_PATIENCE,
            **{f"{name}.{self._host}": value for name, value in self._spark_identity().items()},
        }
        if "endpoint_url" in options:
            conf |= {
                "abfs.endpoint": urlsplit(options["endpoint_url"]).netloc,
                "fns.account.service.type": "BLOB",
                "account.hns.enabled": "false",
            }
        if is_true(options.get("allow_http", "")):
            conf["always.use.https"] = "false"
        return {f"spark.hadoop.fs.azure.{name}": value for name, value in conf.items()}

    def spark_uri(self, uri: str) -> str:
        """ABFS speaks TLS where the scheme says so, whatever its settings say."""
        plain = is_true(self.config.options.get("allow_http", ""))
        return f"abfs{uri.removeprefix('abfss')}" if plain else uri

    def _spark_identity(self) -> dict[str, str]:
        """Settings of ABFS for this account."""
        found = self._identity()
        if "account_key" in found:
            return {"account.auth.type": "SharedKey", "account.key": found["account_key"]}
        if "sas_token" in found:
            token = found["sas_token"].removeprefix("?")
            return {"account.auth.type": "SAS", "sas.fixed.token": token}
        oauth = {"account.auth.type": "OAuth"}
        authority = found.get("authority_host", _AUTHORITY).rstrip("/")
        tenant = found.get("tenant_id", "")
        if "client_secret" in found:
            return oauth | {
                "account.oauth.provider.type": f"{_PROVIDERS}ClientCredsTokenProvider",
                "account.oauth2.client.endpoint": f"{authority}/{tenant}/oauth2/token",
                "account.oauth2.client.id": found["client_id"],
                "account.oauth2.client.secret": found["client_secret"],
            }
        if "federated_token_file" in found:
            return oauth | {
                "account.oauth.provider.type": f"{_PROVIDERS}WorkloadIdentityTokenProvider",
                "account.oauth2.msi.authority": f"{authority}/",
                "account.oauth2.msi.tenant": tenant,
                "account.oauth2.client.id": found["client_id"],
                "account.oauth2.token.file": found["federated_token_file"],
            }
        return oauth | {
            "account.oauth.provider.type": f"{_PROVIDERS}MsiTokenProvider",
            **({"account.oauth2.msi.tenant": tenant} if tenant else {}),
            **({"account.oauth2.client.id": found["client_id"]} if "client_id" in found else {}),
        }
