"""Public keys for which entries are sealed, from files that the settings name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reader.config import EncryptionConfig
from reader.encode import Encryption
from reader.errors import ConfigurationError

__all__ = ["public_keys"]


def public_keys(config: EncryptionConfig, names: Sequence[str]) -> Mapping[str, bytes]:
    """PEM by name. Raises ConfigurationError for a name without a key, or a file of no use."""
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
