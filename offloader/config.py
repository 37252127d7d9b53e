"""``[offload]``, ``[iceberg]`` and ``[http]``, and all settings together."""

import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ByteSize, Field, SecretStr
from pydantic_core import PydanticCustomError

from reader.config import Duration, Options, Section, read_secret
from reader.errors import ConfigurationError
from spark_ext.session.settings import LakeConfig

Retention = Annotated[Duration, Field(ge=timedelta(hours=1))]

# Twice what a job may take at least (offloader/commit/file_age.py); shorter than
# commits stay in the log (offloader/commit/file_age.py).
Window = Annotated[Duration, Field(ge=timedelta(days=1), le=timedelta(days=28))]


def _pattern(text: str) -> str:
    parts = text.removeprefix("persistent://").split("/", 2)
    if len(parts) != 3 or not all(parts) or "://" in text.removeprefix("persistent://"):
        raise PydanticCustomError("topic_pattern", "no pattern: write tenant/namespace/name")
    return text


TopicPattern = Annotated[str, AfterValidator(_pattern)]


class OffloadOverride(Section):
    """Other settings for the topics that match ``topics``; a key that is not set stays as it was.

    ``enabled = false``: the offloader leaves them alone, and takes no hold.
    """

    topics: TopicPattern
    enabled: bool | None = None
    threshold_bytes: ByteSize | None = None
    max_age: Duration | None = None
    interval: Duration | None = None
    grace: Duration | None = None
    chunk_timeout: Duration | None = None
    rollover_after: Duration | None = None
    retention: Retention | None = None
    statistics_columns: list[str] | None = None


class OffloadConfig(Section):
    """What the offloader does.

    ``topics``: names and patterns (``*`` and ``?`` in each part). Sealed ledgers of a partition
    are converted once they hold ``threshold_bytes`` together or the oldest was closed ``max_age``
    ago. ``interval``: a topic gets a turn so often at most. ``grace`` is waited between a commit
    and moving the hold. A chunked message that is not complete ``chunk_timeout`` after it was
    begun, by the brokers' clocks, is given up, and rescued, once no sealed ledger waits to be
    offloaded. ``rollover_after``: an open ledger that is older is closed by unloading its
    partition; unset, never. ``retention``: rows that were published before that are taken out of
    the table; unset, never. ``maintenance_interval``: the daemon maintains each table so often; 0,
    never. ``target_file_bytes``: small files are compacted up to that. ``vacuum_after``: so long
    after a table version was superseded, files that only it has are deleted. ``source = "broker"``
    offloads through the broker, without the columns that it does not show. ``unsafe_retention``:
    whether settings of Pulsar that would delete messages under the hold are warned about, or their
    topics refused. ``override``: in order, so that the last match of a key wins
    (``offloader.model.patterns.settings_of``).
    """

    topics: list[str] = Field(default_factory=list)
    threshold_bytes: ByteSize = ByteSize(1 << 30)
    max_age: Duration = timedelta(hours=1)
    interval: Duration = timedelta(minutes=1)
    grace: Duration = timedelta(minutes=10)
    chunk_timeout: Duration = timedelta(hours=1)
    rollover_after: Duration | None = None
    retention: Retention | None = None
    maintenance_interval: Duration = timedelta(hours=1)
    target_file_bytes: ByteSize = ByteSize(256 << 20)
    vacuum_after: Window = timedelta(days=7)
    source: Literal["bookkeeper", "broker"] = "bookkeeper"
    unsafe_retention: Literal["warn", "refuse"] = "warn"
    subscription: str = "pulsar-lake"
    split_bytes: ByteSize = ByteSize(128 << 20)
    statistics_columns: list[str] = Field(default_factory=list)
    override: list[OffloadOverride] = Field(default_factory=list)

    @property
    def chunk_timeout_ms(self) -> int:
        return int(self.chunk_timeout.total_seconds() * 1000)


_FIELD = re.compile(r"\{(\w*)\}")


def _name_template(text: str) -> str:
    if not all(part.strip() for part in text.split(".")):
        raise PydanticCustomError("name_template", "no name: a part of it is empty")
    unknown = set(_FIELD.findall(text)) - {"tenant", "namespace", "topic"}
    if unknown or "{" in _FIELD.sub("", text) or "}" in _FIELD.sub("", text):
        raise PydanticCustomError(
            "name_template", "no name: its fields are {tenant}, {namespace} and {topic}"
        )
    return text


NameTemplate = Annotated[str, AfterValidator(_name_template)]

_SAID_ELSEWHERE = {
    "type": "iceberg.catalog says which catalog it is",
    "py-catalog-impl": "iceberg.catalog says which catalog it is",
    "py-io-impl": "files are read and written as [storage] says",
}


def _catalog_options(options: dict[str, str]) -> dict[str, str]:
    for name, why in _SAID_ELSEWHERE.items():
        if name in options:
            raise PydanticCustomError(
                "catalog_options", "leave out {name}: {why}", {"name": name, "why": why}
            )
    return options


CatalogOptions = Annotated[Options, AfterValidator(_catalog_options)]


class IcebergConfig(Section):
    """Each table as an Iceberg table, over the same Parquet files.

    ``catalog``: where Iceberg's readers find it, a kind of catalog that PyIceberg knows; "off":
    there are none. ``name``: the catalog's, as its
    readers have to call it where it is part of the key ("sql"). ``options``: PyIceberg's own
    properties of that catalog, secrets among them. ``namespace`` (its levels have a dot between
    them) and ``table``: what a topic is called there. ``keep_snapshots``: an Iceberg snapshot is
    kept so long, and for half of ``offload.vacuum_after`` at most.
    """

    catalog: Literal["off", "sql", "rest", "hive", "glue"] = "off"
    name: str = Field(default="pulsar_lake", min_length=1)
    namespace: NameTemplate = "{tenant}.{namespace}"
    table: NameTemplate = "{topic}"
    keep_snapshots: Annotated[Duration, Field(ge=timedelta(hours=1))] = timedelta(days=1)
    options: CatalogOptions = Field(default_factory=dict, repr=False)

    @property
    def enabled(self) -> bool:
        return self.catalog != "off"


def _address(text: str) -> str:
    if text in ("", "off"):
        return "off"
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535 or (":" in host and host[0] != "["):
        raise PydanticCustomError("http_address", "no address: write host:port, or off")
    return text


_TOKEN_CHARACTERS = 16
_SHORT = f"a token needs {_TOKEN_CHARACTERS} characters at least, as it could be guessed"


def _is_short(token: str) -> bool:
    return 0 < len(token) < _TOKEN_CHARACTERS


def _token(token: SecretStr | None) -> SecretStr | None:
    if token is not None and _is_short(token.get_secret_value().strip()):
        raise PydanticCustomError("http_token", _SHORT)
    return token


class HttpConfig(Section):
    """The offloader's status page, API and metrics.

    ``address``: host and port to listen on (port 0: any that is free), or "off". ``token``, or
    ``token_file``: what a request that changes something has to show; without one there is no
    such request; it has at least 16 characters. ``hosts``: names that the page is reached by,
    beside localhost and addresses. ``topic_labels``: whether metrics have lags of each topic.
    """

    address: Annotated[str, AfterValidator(_address)] = "127.0.0.1:8787"
    token: Annotated[SecretStr | None, AfterValidator(_token)] = None
    token_file: Path | None = None
    hosts: list[str] = Field(default_factory=list)
    topic_labels: bool = True

    @property
    def enabled(self) -> bool:
        return self.address != "off"

    @property
    def endpoint(self) -> tuple[str, int]:
        """Host and port."""
        host, _, port = self.address.rpartition(":")
        return host.strip("[]"), int(port)

    def secret(self) -> str:
        """The token, read afresh; "" where there is none. Raises ConfigurationError."""
        if self.token_file is None:
            return self.token.get_secret_value().strip() if self.token else ""
        found = read_secret("http.token_file", self.token_file)
        if _is_short(found):
            raise ConfigurationError(f"http.token_file: {_SHORT}", hint=str(self.token_file))
        return found


class Config(LakeConfig):
    """All settings; ``load_config`` makes one."""

    offload: OffloadConfig = OffloadConfig()
    iceberg: IcebergConfig = IcebergConfig()
    http: HttpConfig = HttpConfig()


def load_config(source: Config | Mapping[str, Any] | str | Path | None = None) -> Config:
    """Settings out of a TOML file, a mapping or (None) the environment alone.

    Raises ConfigurationError, one line that names the key, for anything wrong.
    """
    return Config.load(source)
