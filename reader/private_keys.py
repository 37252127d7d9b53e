"""Private keys for decryption, from files or from the user's command."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from reader.config import EncryptionConfig
from reader.errors import ConfigurationError, UnavailableError
from reader.key_command import KeyCommand

if TYPE_CHECKING:
    from reader.decode import Decryption

__all__ = ["check_keys", "key_identity", "open_decryption"]


def open_decryption(
    config: EncryptionConfig, topic: str, *, clock: Callable[[], float] = time.monotonic
) -> Decryption | None:
    """What decrypts a topic's entries; None where no key is configured. ``clock``: seconds.

    It raises ConfigurationError for a key file that cannot be read, when it first needs it.
    """
    from reader.decode import Decryption  # heavy, and only where something is decoded

    if not config.configured:
        return None
    return Decryption(lambda name: _pem(config, name, topic, clock), first=config.keys.keys())


def check_keys(config: EncryptionConfig) -> None:
    """Raises ConfigurationError for what no row should have to tell, before anything is read.

    That is a key file that cannot be read, and a command that is not there.
    """
    for name in config.keys:
        _key_file(config, name)
    if config.command and shutil.which(config.command[0]) is None:
        raise ConfigurationError(
            f"encryption.command is not a program: {config.command[0]!r}",
            hint="it is a list: program, arguments",
        )


def _pem(
    config: EncryptionConfig, name: str, topic: str, clock: Callable[[], float]
) -> bytes | None:
    if name in config.keys:  # the user's own names: no path is made of what a producer says
        return _key_file(config, name)
    return _command(tuple(config.command)).key(name, topic, clock) if config.command else None


def _key_file(config: EncryptionConfig, name: str) -> bytes:
    try:
        return config.keys[name].read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"cannot read the private key {name!r}: {error.strerror}",
            hint=f"encryption.keys names {config.keys[name]}",
        ) from error


@lru_cache(maxsize=8)
def _command(command: tuple[str, ...]) -> KeyCommand:
    return KeyCommand(command, key_identity)


def key_identity(pem: bytes) -> object:
    """Equal for the same private key, whatever stands around it and however it is written.

    Raises UnavailableError for what is none.
    """
    from reader.decode import private_key

    try:
        key = private_key("of encryption.command", pem)
    except ConfigurationError as error:
        raise UnavailableError("encryption.command printed what is no private key") from error
    return key.public_key().public_numbers()
