"""What sections of the settings are made of: their base class, durations, secrets in files."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from reader.errors import ConfigurationError

__all__ = ["Duration", "Section", "read_secret"]

_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*$")
_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Section(BaseModel):
    """A table of the settings file: an unknown key is an error, and no error shows its input."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def _duration(value: object) -> object:
    if isinstance(value, str) and (match := _DURATION.match(value)):
        return timedelta(seconds=float(match[1]) * _UNIT[match[2]])
    return value


Duration = Annotated[timedelta, BeforeValidator(_duration)]
"""A number and ms, s, m, h or d."""


def read_secret(key: str, path: Path) -> str:
    """The text of the file that the setting ``key`` names. Raises ConfigurationError."""
    try:
        return path.read_text().strip()
    except OSError as error:
        raise ConfigurationError(f"cannot read {key}: {error.strerror}", hint=str(path)) from error
    except UnicodeDecodeError:  # which holds the secret
        raise ConfigurationError(f"cannot read {key}: it is not UTF-8", hint=str(path)) from None
