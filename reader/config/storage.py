"""``[storage]``: where the tables are."""

from pydantic import Field, field_validator

from reader.config.section import Options, Section
from reader.config.url import StorageUrl, refuse_user


class StorageConfig(Section):
    """Where the tables are: ``s3://``, ``gs://``, ``abfss://``, ``hdfs://``, a local directory, or
    another fsspec URL.

    ``options``: those of the kind of storage (``reader/storage``), which checks them; they reach
    each of its clients. Passwords are among them, not in the URL, which plans and errors show.
    """

    uri: StorageUrl = ""
    options: Options = Field(default_factory=dict, repr=False)

    @field_validator("options")
    @classmethod
    def _shown_without_a_user(cls, options: dict[str, str]) -> dict[str, str]:
        refuse_user(options.get("endpoint_url", ""))
        return options
