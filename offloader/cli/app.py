"""The command line ``pulsar-lake``.

Exit codes: 0 done, 1 failed (one line on standard error), 2 wrong usage, 130 interrupted.
``PULSAR_LAKE_DEBUG=1`` shows the traceback of what failed.
"""

import gc
import os
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TextIO, cast

import typer
from typer.exceptions import TyperException

from offloader.cli.check import check
from offloader.cli.init import init
from offloader.cli.maintain import maintain
from offloader.cli.offload import offload
from offloader.cli.render import say, say_error
from offloader.cli.segments import segments
from offloader.cli.setup import setup
from offloader.cli.sql import sql
from offloader.cli.status import status
from offloader.cli.topic_messages import head, tail
from spark_ext.without_pandas import keep_out_pandas

app = typer.Typer(
    name="pulsar-lake",
    help="Every message ever published to a Pulsar topic, as one Spark SQL table.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (offload, segments, sql, head, tail, status, maintain, check, init, setup):
    app.command()(_command)


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"pulsar-lake {version('pulsar-lake')}")
        raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Every message ever published to a Pulsar topic, as one Spark SQL table."""


def main() -> None:
    """Run the command line and exit."""
    keep_out_pandas()
    # What imports make stays: by default a tenth of a short command goes into looking through it.
    gc.set_threshold(50_000, 20, 100)
    _open_missing_streams()
    try:
        code = app(prog_name="pulsar-lake", standalone_mode=False)
        sys.stdout.flush()
    except TyperException as error:  # wrong usage
        cast(Any, error).show()  # typer does not export the types of its copy of click
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone (head, less): no message can reach it.
        _discard(sys.stdout)
        _discard(sys.stderr)
        sys.exit(1)
    except Exception as error:  # noqa: BLE001 - the last place: one line, never a traceback
        _fail(error)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(error: Exception) -> None:
    try:
        say_error(error, " (PULSAR_LAKE_DEBUG=1 shows where)")
        sys.stderr.flush()
    except (OSError, ValueError):
        _discard(sys.stderr)
    sys.exit(1)


def _open_missing_streams() -> None:
    """Open the null device for closed streams, so that no file takes their number."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115


def _discard(stream: TextIO) -> None:
    """Send the rest of a stream to the null device, or Python would fail to write it at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
