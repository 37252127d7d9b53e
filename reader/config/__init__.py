"""The settings that the reader has, and how settings of any package are loaded.

    section      what sections are made of: base class, durations, options, secrets
    url          URLs without passwords
    pulsar       [pulsar], with its bookies and OAuth2
    storage      [storage]
    query        [query]
    encryption   [encryption]
    write        [write]
    tiered       [[tiered]]
    read_config  ReadConfig: these six
    loading      Settings: a file, a mapping, the environment; one line for what is wrong

Values only: nothing is opened here, and no package but the one that reads a section defines it
(``spark_ext.session.settings``, ``offloader.config``). Imports ``reader.errors``.
"""

from reader.config.encryption import EncryptionConfig
from reader.config.loading import Settings
from reader.config.pulsar import BookKeeperConfig, OAuth2Config, PulsarConfig
from reader.config.query import QueryConfig
from reader.config.read_config import ReadConfig
from reader.config.section import Duration, Options, Section, header_text, read_secret
from reader.config.storage import StorageConfig
from reader.config.tiered import TieredConfig
from reader.config.url import Url
from reader.config.write import WriteConfig

__all__ = [
    "BookKeeperConfig",
    "Duration",
    "EncryptionConfig",
    "OAuth2Config",
    "Options",
    "PulsarConfig",
    "QueryConfig",
    "ReadConfig",
    "Section",
    "Settings",
    "StorageConfig",
    "TieredConfig",
    "Url",
    "WriteConfig",
    "header_text",
    "read_secret",
]
