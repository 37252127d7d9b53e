"""What sections of the settings are made of: base class, durations, options, secrets in files."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from reader.errors import ConfigurationError

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


def _option(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else value


Options = dict[str, Annotated[str, BeforeValidator(_option)]]
"""What clients take as text; TOML's own ``true`` and ``5`` are "true" and "5"."""


def header_text(what: str, text: str) -> str:
    """``text`` without blanks around it, as Pulsar's clients take a token.

    Raises ConfigurationError, which does not show it, unless it can stand in an HTTP header.
    """
    text = text.strip()
    if not all("!" <= one <= "~" for one in text):
        raise ConfigurationError(
            f"{what} is no token: it has a line break, a blank or a letter beyond ASCII in it",
            hint="a token is one line of visible ASCII",
        )
    return text


def read_secret(key: str, path: Path) -> str:
    """The one line in the file that the setting ``key`` names. Raises ConfigurationError."""
    try:
        text = path.read_text().strip()
    except OSError as error:
        raise ConfigurationError(f"cannot read {key}: {error.strerror}", hint=str(path)) from error
    except UnicodeDecodeError:  # which holds the secret
        raise ConfigurationError(f"cannot read {key}: it is not UTF-8", hint=str(path)) from None
    if len(text.splitlines()) > 1 or "\0" in text:
        raise ConfigurationError(f"cannot read {key}: it has more than one line", hint=str(path))
    return text
