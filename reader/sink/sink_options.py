"""The options of a write, by the names that Pulsar's clients and Delta's writers taught."""

import difflib
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, PositiveInt, ValidationError, model_validator

from reader.config import EncryptionConfig, Section
from reader.encode import Compression, Encryption, EntryFormat, Hashing
from reader.errors import ConfigurationError
from reader.model import Topic


class Delivery(StrEnum):
    """What a failure may do to the rows of a write."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


def _topic(value: object) -> object:
    return Topic.parse(value) if isinstance(value, str) else value


def _compression(value: object) -> object:
    named = {one.name: one for one in Compression}
    return named.get(value.upper(), value) if isinstance(value, str) else value


def _hashing(value: object) -> object:
    named = {one.value.lower(): one for one in Hashing}
    return named.get(value.lower(), value) if isinstance(value, str) else value


def _names(value: object) -> object:
    if isinstance(value, str):
        return tuple(one.strip() for one in value.split(",") if one.strip())
    return value


class SinkOptions(Section):
    """How rows are written.

    ``topic``: where they go; None: where each row's ``__topic`` says. ``app``, ``version``: what
    names this write, so that it is done once however often it is run. ``batch_messages``,
    ``batch_bytes``: of an entry at most, before compression. ``encryption_keys``: names of
    ``[encryption] public_keys`` for which entries are sealed. ``merge_schema``: whether columns
    that the topic's schema lacks are added to it. ``enable_deduplication``: whether it may be
    turned on for the topic.
    """

    topic: Annotated[Topic | None, BeforeValidator(_topic)] = None
    delivery: Delivery = Delivery.EXACTLY_ONCE
    app: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    version: Annotated[int, Field(ge=0, lt=1 << 62)] | None = None
    compression: Annotated[Compression, BeforeValidator(_compression)] = Compression.LZ4
    hashing: Annotated[Hashing, BeforeValidator(_hashing)] = Hashing.JAVA_STRING_HASH
    batch_messages: Annotated[PositiveInt, Field(le=1_000_000)] = 1000
    batch_bytes: Annotated[PositiveInt, Field(le=64 << 20)] = 1 << 20
    encryption_keys: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    merge_schema: bool = False
    enable_deduplication: bool = True

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.app is None) != (self.version is None):
            raise ValueError("txnAppId and txnVersion go together")
        if self.merge_schema and self.topic is None:
            raise ValueError(
                "mergeSchema goes with option topic: where rows name their topics, no schema grows"
            )
        return self

    def entry_format(self, entry_bytes: int, schema_version: bytes) -> EntryFormat:
        """How messages become entries of a topic."""
        return EntryFormat(
            self.batch_messages, self.batch_bytes, entry_bytes, self.compression, schema_version
        )

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """Of what Spark was given; names in any case. Raises ConfigurationError."""
        values = by_field(options, _FIELDS, "a write to Pulsar has no option", _OF_SPARK)
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise _told(error) from None


def by_field(
    given: Mapping[str, str], fields: Mapping[str, str], unknown: str, ignored: Collection[str]
) -> dict[str, str]:
    """Values by the fields that the names stand for, in any case; without those that are ignored.

    Raises ConfigurationError for another name, which begins with ``unknown``.
    """
    known = {name.lower(): name for name in fields}
    values: dict[str, str] = {}
    for name, value in given.items():
        if name.lower() in ignored:
            continue
        if name.lower() not in known:
            near = difflib.get_close_matches(name.lower(), known, n=1)
            raise ConfigurationError(
                f"{unknown} {name}",
                hint=f"did you mean {known[near[0]]}?" if near else "one of " + ", ".join(fields),
            )
        values[fields[known[name.lower()]]] = value
    return values


_FIELDS = {
    "topic": "topic",
    "delivery": "delivery",
    "txnAppId": "app",
    "txnVersion": "version",
    "compression": "compression",
    "hashingScheme": "hashing",
    "batchingMaxMessages": "batch_messages",
    "batchingMaxBytes": "batch_bytes",
    "encryptionKeys": "encryption_keys",
    "mergeSchema": "merge_schema",
    "enableDeduplication": "enable_deduplication",
}
_NAMES = {field: name for name, field in _FIELDS.items()}
_OF_SPARK = ("checkpointlocation", "queryname", "path", "config")
_ALLOWED = {
    "delivery": [one.value for one in Delivery],
    "compression": [one.name.lower() for one in Compression],
    "hashing": [one.value for one in Hashing],
}


def _told(error: ValidationError) -> ConfigurationError:
    first = error.errors()[0]
    field = str(first["loc"][0]) if first["loc"] else ""
    text = str(first["msg"]).removeprefix("Value error, ")
    if field in _ALLOWED:
        return ConfigurationError(
            f"option {_NAMES[field]}: not one of its values",
            hint="one of " + ", ".join(_ALLOWED[field]),
        )
    return ConfigurationError(f"option {_NAMES[field]}: {text}" if field else text)


def public_keys(config: EncryptionConfig, names: Sequence[str]) -> Mapping[str, bytes]:
    """What ``encryption_keys`` stands for: PEM by name.

    Raises ConfigurationError for a name without a key, or a file of no use.
    """
    found = {}
    for name in names:
        path = config.public_keys.get(name)
        if path is None:
            raise ConfigurationError(
                f"there is no public key {name!r}",
                hint="encryption.public_keys names the files of public keys",
            )
        try:
            found[name] = path.read_bytes()
        except OSError as error:
            raise ConfigurationError(
                f"cannot read the public key {name!r}: {error.strerror}",
                hint=f"encryption.public_keys names {path}",
            ) from error
    Encryption(found)
    return found
