"""The settings of the reader: what a query, or a write, without Spark needs."""

from pydantic import Field

from reader.config.encryption import EncryptionConfig
from reader.config.loading import Settings
from reader.config.pulsar import PulsarConfig
from reader.config.query import QueryConfig
from reader.config.storage import StorageConfig
from reader.config.tiered import TieredConfig
from reader.config.write import WriteConfig


class ReadConfig(Settings):
    """The reader's sections; ``ReadConfig.load`` makes one."""

    pulsar: PulsarConfig = PulsarConfig()
    storage: StorageConfig = StorageConfig()
    query: QueryConfig = QueryConfig()
    encryption: EncryptionConfig = EncryptionConfig()
    write: WriteConfig = WriteConfig()
    tiered: list[TieredConfig] = Field(default_factory=list)
