"""Topics and their partitions, and how their names are written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from reader.errors import ConfigurationError

_PARTITION_SUFFIX = re.compile(r"^(.*)-partition-(\d+)$")


@dataclass(frozen=True, slots=True, order=True)
class Topic:
    """``persistent://tenant/namespace/name``, without any ``-partition-N``."""

    tenant: str
    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Topic:
        """Read ``persistent://t/n/x``, ``t/n/x`` or ``x`` (of ``public/default``).

        Raises ConfigurationError for anything else, ``non-persistent://`` above all.
        """
        rest = text.strip()
        if rest.startswith("non-persistent://"):
            raise ConfigurationError(
                f"{text} is a non-persistent topic: Pulsar stores nothing of it",
                hint="only persistent topics have a history to read",
            )
        if rest.startswith(("topic://", "segment://")):
            raise ConfigurationError(
                f"{text} is a scalable topic of Pulsar 5, which this version cannot read",
                hint="persistent topics can be read, on Pulsar 5 as well",
            )
        rest = rest.removeprefix("persistent://")
        if "://" in rest:
            raise ConfigurationError(
                f"{text!r} is not a topic name", hint="write persistent://tenant/namespace/topic"
            )
        parts = rest.split("/", 2)
        if len(parts) == 1:
            parts = ["public", "default", *parts]
        if len(parts) != 3 or not all(parts) or {".", ".."} & set(parts):
            raise ConfigurationError(
                f"{text!r} is not a topic name", hint="write tenant/namespace/topic"
            )
        return cls(*parts)

    @property
    def full_name(self) -> str:
        return f"persistent://{self.tenant}/{self.namespace}/{self.name}"

    @property
    def local_name(self) -> str:
        """``tenant/namespace/name``, as people write it."""
        return f"{self.tenant}/{self.namespace}/{self.name}"

    @property
    def rest_path(self) -> str:
        """The path of the admin REST, percent-encoded."""
        return "/".join(quote(part, safe="") for part in (self.tenant, self.namespace, self.name))

    def __str__(self) -> str:
        return self.local_name


@dataclass(frozen=True, slots=True, order=True)
class Partition:
    """One partition of a topic; ``index`` is -1 for a topic without partitions."""

    topic: Topic
    index: int

    @property
    def full_name(self) -> str:
        suffix = f"-partition-{self.index}" if self.index >= 0 else ""
        return self.topic.full_name + suffix

    @property
    def rest_path(self) -> str:
        return self.topic.rest_path + (f"-partition-{self.index}" if self.index >= 0 else "")

    @classmethod
    def parse(cls, full_name: str) -> Partition:
        match = _PARTITION_SUFFIX.match(full_name)
        if match:
            return cls(Topic.parse(match[1]), int(match[2]))
        return cls(Topic.parse(full_name), -1)

    def __str__(self) -> str:
        return self.full_name.removeprefix("persistent://")
