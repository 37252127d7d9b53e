"""Whoever is told of work that was done cannot stop it: a log, metrics, a page, a file."""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import ParamSpec

P = ParamSpec("P")


def listener(tell: Callable[P, object]) -> Callable[P, None]:
    """``tell``, of which nothing comes back: what it fails with goes to Python's log.

    Whoever is given listeners wraps them when he gets them, so that no call can be forgotten.
    """

    @wraps(tell)
    def told(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            tell(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - of whatever kind
            with suppress(Exception):  # a closed standard error, for one
                logging.getLogger(__name__).error("a listener failed: %r", error)

    return told
