"""Private keys for decryption, from files or a command of the user's."""

from __future__ import annotations

import subprocess
import time
from functools import lru_cache
from typing import TYPE_CHECKING

from reader.config import EncryptionConfig
from reader.errors import ConfigurationError

if TYPE_CHECKING:
    from reader.decode import Decryption

__all__ = ["check_keys", "open_decryption"]

_COMMAND_SECONDS = 30
_KEPT_SECONDS = 600  # a command's answer; a task is a short while, and there are many


def open_decryption(config: EncryptionConfig) -> Decryption | None:
    """What opens encrypted entries; None where no key is configured."""
    from reader.decode import Decryption  # heavy, and only where something is decoded

    return Decryption(lambda name: _pem(config, name)) if config.configured else None


def check_keys(config: EncryptionConfig) -> None:
    """Raises ConfigurationError for a key file that is not there, before anything is read."""
    for name in config.keys:
        _pem(config, name)


def _pem(config: EncryptionConfig, name: str) -> bytes | None:
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
    period = int(time.monotonic() / _KEPT_SECONDS)
    return _of_command(tuple(config.command), name, period) or None


@lru_cache(maxsize=256)
def _of_command(command: tuple[str, ...], name: str, _period: int) -> bytes:
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
            hint=said[-1] if said else "it said nothing",
        )
    return done.stdout
