"""Options that several subcommands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from offloader.config import Config

TopicsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TOPIC",
        help="Topics, or patterns such as a/b/*; default: offload.topics of the settings.",
        show_default=False,
    ),
]
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
    """Return the settings of a file, or of the environment alone. Raises ConfigurationError."""
    from offloader.config import load_config
    from reader.storage import check_storage_options

    found = load_config(path)
    check_storage_options(found.storage, found.tiered)
    return found
