"""Programs of client libraries, which need tools that a machine may not have."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from testbed.programs import ToolMissingError


@contextmanager
def skip_without_tools() -> Iterator[None]:
    """Skip the test if a tool of the client that the block runs is missing."""
    try:
        yield
    except ToolMissingError as error:
        pytest.skip(str(error))
