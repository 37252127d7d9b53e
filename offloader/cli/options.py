"""Options that several sub-commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reader.config import Config, load_config

__all__ = ["ConfigOption", "settings"]

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Settings (TOML). Every key is also an environment variable, "
        "PULSAR_LAKE__SECTION__KEY.",
    ),
]


def settings(path: Path | None) -> Config:
    """The settings of a file, or of the environment alone. Raises ConfigurationError."""
    return load_config(path)
