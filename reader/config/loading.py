"""Loading settings: a TOML file, a mapping or the environment, checked before anything runs.

One file serves all packages, and each loads the sections that it reads: those of the others are
accepted by their names, and checked by whom they belong to. Every key is also an environment
variable, ``PULSAR_LAKE__SECTION__KEY``, which wins over the file; a mapping given in code wins
over both. No message shows a value: it may be a secret.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict, SettingsError

from reader.errors import ConfigurationError

SECTIONS = (
    "pulsar",
    "storage",
    "tiered",
    "query",
    "encryption",
    "write",
    "spark",
    "offload",
    "iceberg",
    "http",
)
"""Every section of a settings file, whichever package reads it."""

_PREFIX = "PULSAR_LAKE__"
_S = TypeVar("_S", bound="Settings")


class Settings(BaseSettings):
    """Base of the classes whose fields are the sections that a package reads."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        env_prefix=_PREFIX,
        env_nested_delimiter="__",
        nested_model_default_partial_update=True,
        hide_input_in_errors=True,
    )

    @classmethod
    def load(cls, source: Settings | Mapping[str, Any] | str | Path | None = None) -> Self:
        """Settings out of a TOML file, a mapping or (None) the environment alone.

        Of settings that are loaded already, the sections that this class has. Raises
        ConfigurationError, one line that names the key, for anything wrong.
        """
        if isinstance(source, cls):
            return source if type(source) is cls else _narrowed(cls, source)
        if isinstance(source, Settings):
            raise TypeError(f"{type(source).__name__} has not all sections of {cls.__name__}")
        origin = "configuration"
        try:
            if isinstance(source, str | Path):
                origin = str(source)
                # What is passed in wins over the environment: a file must not.
                given = _merged(_toml(Path(source)), EnvSettingsSource(cls)())
            else:
                given = dict(source or {})
            others = set(SECTIONS) - cls.model_fields.keys()
            return cls(**{name: value for name, value in given.items() if name not in others})
        except ValidationError as error:
            # Not "from error": pydantic's errors and a parser's keep what they were given.
            raise _explained(error, origin, cls) from None
        except SettingsError as error:
            raise _not_json(error) from None


def _narrowed(cls: type[_S], found: _S) -> _S:
    return cls.model_construct(**{name: getattr(found, name) for name in cls.model_fields})


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigurationError(
            f"cannot read the configuration {path}: {error.strerror}", hint="--config FILE names it"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is not TOML: {error}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not TOML: byte {error.start} is not UTF-8") from None


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Both, and where both have a key what ``above`` says; tables are merged key by key."""
    found = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(found.get(key), dict)
        found[key] = _merged(found[key], value) if both else value
    return found


def _explained(error: ValidationError, origin: str, cls: type[Settings]) -> ConfigurationError:
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] != "extra_forbidden":
        return ConfigurationError(f"{origin}: {where}: {first['msg']}")
    known = list(SECTIONS) if len(first["loc"]) == 1 else _keys(cls, first["loc"][:-1])
    near = difflib.get_close_matches(str(first["loc"][-1]), known, n=1)
    return ConfigurationError(
        f"{origin}: unknown key {where}",
        hint=f"did you mean {near[0]}?" if near else f"known keys: {', '.join(known)}",
    )


def _keys(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """The keys of the table at ``location``."""
    for part in location:
        if isinstance(part, int):  # the place in a list, whose model is known already
            continue
        annotation = model.model_fields[part].annotation
        for kind in (annotation, *get_args(annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                model = kind
    return list(model.model_fields)


def _not_json(error: SettingsError) -> ConfigurationError:
    text = error.__cause__.doc if isinstance(error.__cause__, json.JSONDecodeError) else None
    names = [
        name
        for name, value in os.environ.items()
        if name.upper().startswith(_PREFIX) and value == text
    ]
    return ConfigurationError(
        f"environment: the value of {names[0] if names else f'a variable {_PREFIX}…'} is not JSON",
        hint="lists and tables are written as JSON there",
    )
