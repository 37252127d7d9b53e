"""Private keys for decryption, from files or from the operator's function."""

from __future__ import annotations

import pkgutil
import time
from collections.abc import Callable
from functools import lru_cache
from traceback import walk_tb
from typing import TYPE_CHECKING

from reader.config import EncryptionConfig
from reader.errors import ConfigurationError, UnavailableError
from reader.key_provider import KeyProvider

if TYPE_CHECKING:
    from reader.decode import Decryption


def open_decryption(
    config: EncryptionConfig, topic: str, *, clock: Callable[[], float] = time.monotonic
) -> Decryption | None:
    """Return what decrypts a topic's entries, or None if no key is configured.

    ``clock``: returns seconds. The result raises ConfigurationError if it needs a key file that
    cannot be read, or a key provider that cannot be imported.
    """
    from reader.decode import Decryption  # heavy, and only where something is decoded

    if not config.configured:
        return None
    return Decryption(lambda name: _pem(config, name, topic, clock), first=config.keys.keys())


def check_keys(config: EncryptionConfig) -> None:
    """Raise ConfigurationError before anything is read, so that no row has to state the reason.

    The reason is a key file that cannot be read, or a key provider that cannot be imported.
    """
    for name in config.keys:
        _key_file(config, name)
    if config.key_provider:
        _provider(config.key_provider)


def _pem(
    config: EncryptionConfig, name: str, topic: str, clock: Callable[[], float]
) -> bytes | None:
    if name in config.keys:  # the user's own names: no path is made of a producer's text
        return _key_file(config, name)
    if not config.key_provider:
        return None
    return _provider(config.key_provider).key(name, topic, clock)


def _key_file(config: EncryptionConfig, name: str) -> bytes:
    try:
        return config.keys[name].read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"cannot read the private key {name!r}: {error.strerror}",
            hint=f"encryption.keys names {config.keys[name]}",
        ) from error


@lru_cache(maxsize=8)
def _provider(path: str) -> KeyProvider:
    """Import the function. Raises ConfigurationError if that fails."""
    hint = "name it package.module:function, and install its package wherever Spark runs tasks"
    try:
        function = pkgutil.resolve_name(path)
    except Exception as error:
        # An error of the module's own code may contain a secret.
        is_own = len([*walk_tb(error.__traceback__)]) > 2
        shown = isinstance(error, ImportError) or not is_own
        raise ConfigurationError(
            f"cannot import encryption.key_provider {path!r}: "
            f"{error if shown else type(error).__name__}",
            hint=hint,
        ) from error
    if not callable(function):
        raise ConfigurationError(f"encryption.key_provider {path!r} is no function", hint=hint)
    return KeyProvider(function, key_identity)


def key_identity(pem: bytes) -> object:
    """Return an equal value for the same private key, however the key is written.

    Raises UnavailableError if the bytes are no private key.
    """
    from reader.decode import private_key

    try:
        key = private_key("of encryption.key_provider", pem)
    except ConfigurationError as error:
        raise UnavailableError("encryption.key_provider returned no private key") from error
    return key.public_key().public_numbers()
