"""Subcommands for before the first query.

    check  whether all that is needed is as it has to be
    init   a settings file, and whether it works
    setup  jars and kernels, which the first query would wait for

Imports ``offloader.check``, ``offloader.cli``, ``offloader.config``, ``spark_ext`` and
``reader``.
"""

from __future__ import annotations

from offloader.cli.preparation.check import check
from offloader.cli.preparation.init import init
from offloader.cli.preparation.setup import setup

__all__ = ["check", "init", "setup"]
