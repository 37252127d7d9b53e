"""``[[tiered]]``: where Pulsar's own tiered storage puts the ledgers that it offloads."""

from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator
from pydantic_core import PydanticCustomError

from reader.config.section import Options, Section
from reader.config.storage import StorageConfig
from reader.config.url import StorageUrl, refuse_user


def _pattern(text: str) -> str:
    if text.count("/") != 1 or not all(text.split("/")):
        raise PydanticCustomError("namespace_pattern", "no pattern: write tenant/namespace")
    return text


NamespacePattern = Annotated[str, AfterValidator(_pattern)]


class TieredConfig(Section):
    """One place: a bucket of a jcloud driver, or the base directory of the filesystem driver.

    ``options``: as those of ``[storage]``. ``namespaces``: patterns (``*`` and ``?`` in each part)
    of those whose ledgers may lie here; by default all. ``format``: set only where the URI's scheme
    does not tell which kind of driver wrote there (HDFS and directories: filesystem; else jcloud).
    """

    uri: Annotated[StorageUrl, Field(min_length=1)]
    options: Options = Field(default_factory=dict, repr=False)
    namespaces: list[NamespacePattern] = Field(default_factory=lambda: ["*/*"])
    format: Literal["jcloud", "filesystem"] | None = None

    @field_validator("options")
    @classmethod
    def _shown_without_a_user(cls, options: dict[str, str]) -> dict[str, str]:
        refuse_user(options.get("endpoint_url", ""))
        return options

    @property
    def storage(self) -> StorageConfig:
        """The place, as any storage is opened."""
        return StorageConfig(uri=self.uri, options=self.options)

    def has(self, tenant: str, namespace: str) -> bool:
        """Whether ledgers of the namespace may lie here."""
        patterns = (one.split("/") for one in self.namespaces)
        return any(fnmatchcase(tenant, a) and fnmatchcase(namespace, b) for a, b in patterns)
