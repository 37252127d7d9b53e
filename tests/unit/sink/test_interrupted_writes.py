"""What a driver that dies, or a store whose answer is lost, leaves of a write."""

from collections.abc import Callable
from contextlib import suppress
from itertools import count

import pytest

from reader.errors import UnavailableError
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
    world: World, monkeypatch: pytest.MonkeyPatch, end: Callable[[NamedWrite], None], calls: int
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


@pytest.mark.parametrize("answer", ["lost", "of a retry"])
def test_a_manifest_that_is_there_has_decided(
    world: World, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """The store has it, though nobody heard so, or its client met its own first attempt."""
    real = Objects.put_if_absent

    def put(objects: Objects, path: str, data: bytes) -> bool:
        assert real(objects, path, data)
        if answer == "lost":
            raise UnavailableError("no answer")
        return False

    write = world.write()
    with monkeypatch.context() as patched:
        patched.setattr(Objects, "put_if_absent", put)
        decided = write.decide(0, [world.staged(batches(2))], encrypted=False)
    assert decided is not None
    assert decided[1], "this driver's manifest"
    assert world.write().latest() == decided[0]
