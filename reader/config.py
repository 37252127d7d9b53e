"""Settings: a TOML file, a mapping or environment variables, checked before anything runs.

Every key is also an environment variable, ``PULSAR_LAKE__SECTION__KEY``, which wins over the
file; a mapping given in code wins over both. Secrets never show in ``repr``.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from reader.errors import ConfigurationError

__all__ = [
    "BookKeeperConfig",
    "Config",
    "EncryptionConfig",
    "HttpConfig",
    "OAuth2Config",
    "OffloadConfig",
    "OffloadOverride",
    "PulsarConfig",
    "QueryConfig",
    "SparkConfig",
    "StorageConfig",
    "load_config",
]

_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*$")
_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _duration(value: object) -> object:
    if isinstance(value, str) and (match := _DURATION.match(value)):
        return timedelta(seconds=float(match[1]) * _UNIT[match[2]])
    return value


Duration = Annotated[timedelta, BeforeValidator(_duration)]

Retention = Annotated[Duration, Field(ge=timedelta(hours=1))]

# Twice what a job may take at least (offloader/commit/file_age.py); shorter than
# commits stay in the log (offloader/commit/append.py).
Window = Annotated[Duration, Field(ge=timedelta(days=1), le=timedelta(days=28))]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class OAuth2Config(_Section):
    """OAuth2 client credentials, exchanged at the issuer for Pulsar tokens.

    ``key_file``: JSON with client_id and client_secret, as Pulsar's other clients take it.
    ``tls_trust_certs_file``: the issuer's authority; not set: those of the system.
    """

    issuer_url: str = ""
    client_id: str = ""
    client_secret: SecretStr | None = None
    key_file: Path | None = None
    audience: str = ""
    scope: str = ""
    tls_trust_certs_file: Path | None = None

    @property
    def configured(self) -> bool:
        return bool(self.issuer_url)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        by_secret = bool(self.client_id and self.client_secret)
        if self.configured and not by_secret and self.key_file is None:
            raise PydanticCustomError(
                "oauth2", "an issuer needs client_id and client_secret, or key_file"
            )
        return self


class BookKeeperConfig(_Section):
    """How bookies are connected to.

    ``tls``: by START_TLS on the bookie's usual port; with a client certificate where they ask for
    one. ``sasl_user`` and its password: SASL with DIGEST-MD5.
    """

    tls: bool = False
    tls_trust_certs_file: Path | None = None
    tls_certificate_file: Path | None = None
    tls_key_file: Path | None = None
    tls_verify_hostname: bool = True
    sasl_user: str = ""
    sasl_password: SecretStr | None = None
    sasl_password_file: Path | None = None

    def sasl_secret(self) -> str:
        """The password, read afresh."""
        if self.sasl_password_file is not None:
            return _read("pulsar.bookkeeper.sasl_password_file", self.sasl_password_file)
        return self.sasl_password.get_secret_value() if self.sasl_password else ""


class PulsarConfig(_Section):
    """Where Pulsar is, and who we are there.

    ``token``, ``token_file``, ``oauth2`` or a client certificate (``tls_certificate_file`` and
    ``tls_key_file``): the identity for broker and admin; a certificate beside a token is shown as
    well. ``namespaces``: what to list for a role that may not ask for tenants.
    ``bookies`` maps a bookie id to ``host:port`` where ids are not addresses themselves.
    """

    service_url: str = "pulsar://localhost:6650"
    admin_url: str = "http://localhost:8080"
    cluster: str | None = None
    token: SecretStr | None = None
    token_file: Path | None = None
    oauth2: OAuth2Config = OAuth2Config()
    tls_trust_certs_file: Path | None = None
    tls_certificate_file: Path | None = None
    tls_key_file: Path | None = None
    tls_verify_hostname: bool = True
    namespaces: list[str] = Field(default_factory=list)
    bookkeeper: BookKeeperConfig = BookKeeperConfig()
    bookies: dict[str, str] = Field(default_factory=dict)
    bookkeeper_password: SecretStr = SecretStr("")
    timeout: Duration = timedelta(seconds=30)
    bookie_timeout: Duration = timedelta(seconds=10)

    def auth_token(self) -> str | None:
        """The token as it is set, read afresh: files are rotated."""
        if self.token_file is not None:
            return _read("pulsar.token_file", self.token_file)
        return self.token.get_secret_value() if self.token else None


def _read(name: str, path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        raise ConfigurationError(f"cannot read {name}: {error.strerror}", hint=str(path)) from error


class StorageConfig(_Section):
    """Where the tables are: ``s3://bucket/prefix``, a local directory, or another fsspec URL.

    ``options``: those of the kind of storage (``reader/storage``), which checks them; they reach
    each of its clients.
    """

    uri: str = ""
    options: dict[str, str] = Field(default_factory=dict, repr=False)


def _pattern(text: str) -> str:
    parts = text.removeprefix("persistent://").split("/", 2)
    if len(parts) != 3 or not all(parts) or "://" in text.removeprefix("persistent://"):
        raise PydanticCustomError(
            "topic_pattern", "{text} is no pattern: write tenant/namespace/name", {"text": text}
        )
    return text


TopicPattern = Annotated[str, AfterValidator(_pattern)]


class OffloadOverride(_Section):
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


class OffloadConfig(_Section):
    """What the offloader does.

    ``topics``: names and patterns (``*`` and ``?`` in each part). Sealed ledgers of a partition
    are converted once they hold ``threshold_bytes`` together or the oldest was closed ``max_age``
    ago. ``interval``: a topic gets a turn so often at most. ``grace`` is waited between a commit
    and moving the hold. A chunked message that is not complete ``chunk_timeout`` after it was
    published is given up, and rescued. ``rollover_after``: an open ledger that is older is closed
    by unloading its partition; unset, never. ``retention``: rows that were published before that
    are taken out of the table; unset, never. ``maintenance_interval``: the
    daemon maintains each table so often; 0, never. ``target_file_bytes``: small files are
    compacted up to that.
    ``vacuum_after``: so long after a table version was superseded, files that only it has are
    deleted. ``source = "broker"`` offloads through pulsar-client and loses the columns it cannot
    give. ``dangers``: whether settings of Pulsar that would delete messages under the hold are
    warned about, or their topics refused. ``override``: in
    order, so that the last match of a key wins (``offloader.model.patterns.settings_of``).
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
    dangers: Literal["warn", "refuse"] = "warn"
    subscription: str = "pulsar-lake"
    split_bytes: ByteSize = ByteSize(128 << 20)
    statistics_columns: list[str] = Field(default_factory=list)
    override: list[OffloadOverride] = Field(default_factory=list)


class QueryConfig(_Section):
    """How queries read.

    ``tail_entries``: open ledgers with at most so many entries go through the broker.
    ``clock_skew``: if set, time ranges also prune hot segments by ledger close times with this
    allowance for producers' clocks; unset, pruning is exact. ``compaction_retain_null_key``:
    whether the compacted view has messages without a key; unset, the broker is asked.
    ``count_from_headers``: queries that need no column of single messages believe an entry's
    header how many it holds, and inflate nothing. ``allow_gaps``: read topics of which messages
    were deleted before they were offloaded; without, that is an error.
    """

    tail_entries: int = Field(default=3000, ge=0)
    clock_skew: Duration | None = None
    compaction_retain_null_key: bool | None = None
    count_from_headers: bool = True
    allow_gaps: bool = False
    learn_ranges: bool = True
    cache_dir: Path | None = None


class EncryptionConfig(_Section):
    """How encrypted messages are decrypted; without keys they are rescued rows.

    ``keys``: files of private keys (RSA or EC, PEM) by the names that producers gave. ``command``
    is run for a name that is not among them, as its last argument: it prints the key, or nothing
    where there is none. Both have to be there wherever Spark runs tasks. ``store_plaintext``:
    whether the offloader decrypts as well; without, tables hold ciphertext, and queries decrypt.
    """

    keys: dict[str, Path] = Field(default_factory=dict)
    command: list[str] = Field(default_factory=list)
    store_plaintext: bool = False

    @property
    def configured(self) -> bool:
        """Whether there are keys at all."""
        return bool(self.keys or self.command)


class SparkConfig(_Section):
    """The embedded Spark session: its master and any Spark setting."""

    master: str = "local[*]"
    conf: dict[str, str] = Field(default_factory=dict)


def _address(text: str) -> str:
    if text in ("", "off"):
        return "off"
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535 or (":" in host and host[0] != "["):
        raise PydanticCustomError(
            "http_address", "{text} is no address: write host:port, or off", {"text": text}
        )
    return text


class HttpConfig(_Section):
    """The offloader's status page, API and metrics.

    ``address``: host and port to listen on (port 0: any that is free), or "off". ``token``, or
    ``token_file``: what a request that changes something has to show; without one there is no
    such request. ``hosts``: names that the page is reached by, beside localhost and addresses;
    beyond loopback any without. ``topic_labels``: whether metrics have lags of each topic.
    """

    address: Annotated[str, AfterValidator(_address)] = "127.0.0.1:8787"
    token: SecretStr | None = None
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
        """The token, read afresh; "" where there is none."""
        if self.token_file is not None:
            return _read("http.token_file", self.token_file)
        return self.token.get_secret_value().strip() if self.token else ""


class Config(BaseSettings):
    """All settings; ``load_config`` makes one."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        env_prefix="PULSAR_LAKE__",
        env_nested_delimiter="__",
        nested_model_default_partial_update=True,
    )

    pulsar: PulsarConfig = PulsarConfig()
    storage: StorageConfig = StorageConfig()
    offload: OffloadConfig = OffloadConfig()
    query: QueryConfig = QueryConfig()
    encryption: EncryptionConfig = EncryptionConfig()
    spark: SparkConfig = SparkConfig()
    http: HttpConfig = HttpConfig()


class _FileConfig(Config):
    """As Config, but the environment wins over what is passed in (a file's content)."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return env_settings, init_settings


def load_config(source: Config | Mapping[str, Any] | str | Path | None = None) -> Config:
    """Settings out of a TOML file, a mapping or (None) the environment alone.

    Raises ConfigurationError, one line that names the key, for anything wrong.
    """
    if isinstance(source, Config):
        return source
    try:
        if isinstance(source, str | Path):
            found = _FileConfig(**_toml(Path(source)))
            return Config.model_construct(
                **{name: getattr(found, name) for name in Config.model_fields}
            )
        return Config(**dict(source or {}))
    except ValidationError as error:
        raise _explain(error, source) from error


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigurationError(
            f"cannot read the configuration {path}: {error.strerror}", hint="--config FILE names it"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not TOML: {error}") from error


def _explain(error: ValidationError, source: object) -> ConfigurationError:
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    origin = f"{source}: " if isinstance(source, str | Path) else "configuration: "
    if first["type"] != "extra_forbidden":
        return ConfigurationError(f"{origin}{where}: {first['msg']}")
    model: type[BaseModel] = Config
    for part in first["loc"][:-1]:
        if isinstance(part, int):  # the place in a list, whose model is known already
            continue
        annotation = model.model_fields[part].annotation
        for kind in (annotation, *get_args(annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                model = kind
    near = difflib.get_close_matches(str(first["loc"][-1]), model.model_fields, n=1)
    known = ", ".join(model.model_fields)
    return ConfigurationError(
        f"{origin}unknown key {where}",
        hint=f"did you mean {near[0]}?" if near else f"known keys: {known}",
    )
