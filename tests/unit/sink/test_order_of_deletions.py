"""What is deleted first: a driver may die in between, and the next one goes on with the rest."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count

import pytest

from reader.sink import NamedWrite
from reader.storage.objects import Objects
from tests.unit.sink.worlds import World, batches


class DeadError(Exception):
    """Of the driver."""


def forget(write: NamedWrite) -> None:
    write.forget()


def send(write: NamedWrite) -> None:
    latest = write.latest()
    assert latest is not None
    write.sent(latest)


@pytest.mark.parametrize("end", [send, forget])
@pytest.mark.parametrize("calls", range(3))
def test_no_manifest_is_without_its_files(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    end: Callable[[NamedWrite], None],
    calls: int,
) -> None:
    """Nobody could ever send it, nor what comes behind it."""
    write = world.write()
    assert write.decide(0, [world.staged(batches(8, large=True))], encrypted=False) is not None
    asked = count()

    def mortal(call: Callable[..., None]) -> Callable[..., None]:
        def called(*given: object) -> None:
            if next(asked) == calls:
                raise DeadError
            call(*given)

        return called

    with monkeypatch.context() as patched, suppress(DeadError):
        for name in ("put", "delete"):
            patched.setattr(Objects, name, mortal(getattr(Objects, name)))
        end(write)
    found = world.write().latest()
    assert (
        found is None or found.sent or all((world.directory / one).exists() for one in found.files)
    )
