"""``[pulsar]``: where Pulsar and its bookies are, and the identity used there."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self, TypedDict

from pydantic import Field, SecretStr, model_validator
from pydantic_core import PydanticCustomError

from reader.config.section import Duration, Section, header_text, read_secret
from reader.config.url import Url


class OAuth2Config(Section):
    """OAuth2 client credentials, exchanged at the issuer for Pulsar tokens.

    ``key_file``: JSON with client_id and client_secret, as Pulsar's other clients take it.
    ``tls_trust_certs_file``: the issuer's authority; not set: those of the system.
    """

    issuer_url: Url = ""
    client_id: str = ""
    client_secret: SecretStr | None = None
    key_file: Path | None = None
    audience: str = ""
    scope: str = ""
    tls_trust_certs_file: Path | None = None

    @property
    def configured(self) -> bool:
        """Whether there is an issuer at all."""
        return bool(self.issuer_url)

    @model_validator(mode="after")
    def _has_credentials(self) -> Self:
        by_secret = bool(self.client_id and self.client_secret)
        if self.configured and not by_secret and self.key_file is None:
            raise PydanticCustomError(
                "oauth2", "an issuer needs client_id and client_secret, or key_file"
            )
        return self


class BookKeeperConfig(Section):
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
        """The password, read afresh; "" where there is none. Raises ConfigurationError."""
        if self.sasl_password_file is not None:
            return read_secret("pulsar.bookkeeper.sasl_password_file", self.sasl_password_file)
        return self.sasl_password.get_secret_value() if self.sasl_password else ""


class JsonForms(TypedDict):
    """Forms of values in a topic's JSON, as ``SchemaInfo`` has them."""

    json_bytes: str
    json_times: str


class PulsarConfig(Section):
    """Where Pulsar is, and who we are there.

    ``token``, ``token_file``, ``oauth2`` or a client certificate (``tls_certificate_file`` and
    ``tls_key_file``): the identity for broker and admin; a certificate beside a token is shown as
    well. ``namespaces``: what to list for a role that may not ask for tenants.
    ``broker_hosts``: names of brokers, with ``*`` and ``?``, that a token is shown to beside those
    of the URLs and those that the admin itself has (``reader.pulsar.http``).
    ``bookies`` maps a bookie id to ``host:port`` where ids are not addresses themselves.
    ``json_bytes``: by topic (``tenant/namespace/name``), what its JSON holds for bytes: "base64",
    or "text" as Pulsar's Python client writes it (docs/types.md).
    ``json_times``: by topic, what is written to its JSON for times: "text" (ISO 8601), or "numbers"
    as the schema counts them.
    ``lost_ledgers``: ids (cluster-wide, as Pulsar's are) of ledgers that are declared lost: what
    can be read of them is read, and each other entry is a rescued row.
    ``expanded_bytes``: payloads of at most so many bytes are decompressed, however few bytes of
    them are stored; larger ones only up to 64 times what is stored. Above its default it raises
    the other bounds of entries and payloads with it (docs/limitations.md).
    ``clock_difference``: how far producers' clocks may be from the brokers'. It matters to messages
    near the time at which a topic's schemas were registered, for the first time or anew.
    ``assume_schema_version``: by topic (``tenant/namespace/name``), the schema version of messages
    that name none.
    """

    service_url: Url = "pulsar://localhost:6650"
    admin_url: Url = "http://localhost:8080"
    cluster: str | None = None
    token: SecretStr | None = None
    token_file: Path | None = None
    oauth2: OAuth2Config = OAuth2Config()
    tls_trust_certs_file: Path | None = None
    tls_certificate_file: Path | None = None
    tls_key_file: Path | None = None
    tls_verify_hostname: bool = True
    namespaces: list[str] = Field(default_factory=list)
    broker_hosts: list[str] = Field(default_factory=list)
    bookkeeper: BookKeeperConfig = BookKeeperConfig()
    bookies: dict[str, str] = Field(default_factory=dict)
    assume_schema_version: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    lost_ledgers: list[Annotated[int, Field(ge=0)]] = Field(default_factory=list)
    expanded_bytes: int = Field(default=32 << 20, ge=1 << 20, le=512 << 20)
    clock_difference: Annotated[Duration, Field(ge=timedelta(seconds=1))] = timedelta(seconds=1)
    json_bytes: dict[str, Literal["base64", "text"]] = Field(default_factory=dict)
    json_times: dict[str, Literal["text", "numbers"]] = Field(default_factory=dict)
    bookkeeper_password: SecretStr = SecretStr("")
    timeout: Duration = timedelta(seconds=30)
    bookie_timeout: Duration = timedelta(seconds=10)

    def json_forms(self, topic: str) -> JsonForms:
        """Return what the settings say of the JSON of a topic (``tenant/namespace/name``)."""
        return {
            "json_bytes": self.json_bytes.get(topic, ""),
            "json_times": self.json_times.get(topic, ""),
        }

    def auth_token(self) -> str | None:
        """The token, read afresh, because files are rotated. Raises ConfigurationError."""
        if self.token_file is not None:
            return header_text(
                "pulsar.token_file", read_secret("pulsar.token_file", self.token_file)
            )
        return header_text("pulsar.token", self.token.get_secret_value()) if self.token else None
