"""How far the Iceberg tables of many topics are behind: asked side by side, in bounded time."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Protocol

from offloader.model import IcebergLag
from reader.background import in_thread
from reader.errors import UnavailableError
from reader.model import Topic

_ASKERS = 8
_SECONDS = 30.0


class LagReader(Protocol):
    """For one thread (``IcebergFollower``)."""

    def lag(self, topic: Topic) -> IcebergLag | None: ...
    def close(self) -> None: ...


def read_lags(
    opened: Callable[[], LagReader | None], topics: Iterable[Topic], *, seconds: float = _SECONDS
) -> Callable[[Topic], IcebergLag | None]:
    """Begin to ask for all of them, and give what waits for the answer for one.

    ``opened`` opens one of a few that ask side by side; None: there is nothing to ask. ``seconds``:
    from now on; who has no answer by then gets an UnavailableError. A catalog that hangs holds up
    no exit.
    """
    answers: dict[Topic, Future[IcebergLag | None]] = {one: Future() for one in topics}
    waiting: SimpleQueue[Topic] = SimpleQueue()
    for topic in answers:
        waiting.put(topic)
    ends = time.monotonic() + seconds
    readers = [opened() for _ in range(min(_ASKERS, len(answers)))]

    def ask(reader: LagReader) -> None:
        try:
            while time.monotonic() < ends:
                topic = waiting.get_nowait()
                try:
                    answers[topic].set_result(reader.lag(topic))
                except Exception as error:  # noqa: BLE001 - raised for who waits
                    answers[topic].set_exception(error)
        except Empty:
            pass
        finally:
            reader.close()

    for reader in readers:
        if reader is None:
            return lambda topic: None
        in_thread(lambda reader=reader: ask(reader))  # type: ignore[misc]

    def answer(topic: Topic) -> IcebergLag | None:
        try:
            return answers[topic].result(max(0.0, ends - time.monotonic()))
        except TimeoutError as error:
            if answers[topic].done():  # that is the answer
                raise
            raise UnavailableError(
                f"the Iceberg catalog has not answered within {seconds:g} s",
                hint="check the catalog and [iceberg]",
            ) from error

    return answer
