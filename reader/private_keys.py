"""Private keys for decryption, from files or from the user's command."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from reader.config import EncryptionConfig
from reader.errors import ConfigurationError

if TYPE_CHECKING:
    from reader.decode import Decryption

__all__ = ["check_keys", "open_decryption"]

_COMMAND_SECONDS = 30
_KEPT_SECONDS = 600  # of a command's output: tasks are short and many


def open_decryption(
    config: EncryptionConfig, *, clock: Callable[[], float] = time.monotonic
) -> Decryption | None:
    """What decrypts entries; None where no key is configured. ``clock``: seconds.

    It raises ConfigurationError for a key that cannot be read, when it first needs it.
    """
    from reader.decode import Decryption  # heavy, and only where something is decoded

    return Decryption(lambda name: _pem(config, name, clock)) if config.configured else None


def check_keys(config: EncryptionConfig) -> None:
    """Raises ConfigurationError for a key file that cannot be read, before anything else is."""
    for name in config.keys:
        _pem(config, name, time.monotonic)


def _pem(config: EncryptionConfig, name: str, clock: Callable[[], float]) -> bytes | None:
    if name in config.keys:
        try:
            return config.keys[name].read_bytes()
        except OSError as error:
            raise ConfigurationError(
                f"cannot read the private key {name!r}: {error.strerror}",
                hint=f"encryption.keys names {config.keys[name]}",
            ) from error
    if not config.command:
        return None
    period = int(clock() / _KEPT_SECONDS)
    return _command_output(tuple(config.command), name, period) or None


@lru_cache(maxsize=256)
def _command_output(command: tuple[str, ...], name: str, _period: int) -> bytes:
    try:
        done = subprocess.run(
            [*command, name], capture_output=True, timeout=_COMMAND_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(
            f"encryption.command cannot be run: {error}", hint="it is a list: program, arguments"
        ) from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise ConfigurationError(
            f"encryption.command failed for the key {name!r} (exit code {done.returncode})",
            hint=said[-1] if said else "it wrote nothing to stderr",
        )
    return done.stdout
