"""Questions on behalf of those who watch: few at once, each asked once, none holds anybody up."""

import asyncio
import threading

import pytest

from offloader.web.query_cache import QueryCache
from reader.errors import NotFoundError, UnavailableError


class Server:
    """Counts who asks; answers once ``go`` is set."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.asked = self.running = self.most = 0
        self._changed = threading.Condition()

    def wait_for(self, asked: int) -> bool:
        """Until so many have asked."""
        with self._changed:
            return self._changed.wait_for(lambda: self.asked >= asked, 60)

    def __call__(self) -> int:
        with self._changed:
            self.asked += 1
            self.running += 1
            self.most = max(self.most, self.running)
            self._changed.notify_all()
        try:
            assert self.go.wait(60)
        finally:
            with self._changed:
                self.running -= 1
        return self.asked


def test_the_same_question_is_asked_once_and_its_answer_kept() -> None:
    server, now = Server(), 1000.0
    server.go.set()

    async def run() -> list[int]:
        nonlocal now
        cache = QueryCache(lambda: now)
        found = await asyncio.gather(*(cache.get("a", server, keep=0.3) for _ in range(20)))
        now += 0.2
        found.append(await cache.get("a", server, keep=0.3))
        now += 0.2
        return [*found, await cache.get("a", server, keep=0.3)]

    assert asyncio.run(run()) == [1] * 21 + [2]


def test_few_run_at_once_and_too_many_are_refused() -> None:
    server = Server()

    async def run() -> list[int | BaseException]:
        cache = QueryCache()
        waiting = [asyncio.create_task(cache.get(n, server, keep=1.0)) for n in range(64)]
        assert await asyncio.to_thread(server.wait_for, 4)
        with pytest.raises(UnavailableError, match="too many queries"):
            await cache.get("one more", server, keep=1.0)
        server.go.set()
        return await asyncio.gather(*waiting, return_exceptions=True)

    assert len(asyncio.run(run())) == 64
    assert (server.asked, server.most) == (64, 4)


def test_answers_do_not_count_as_waiting() -> None:
    cache = QueryCache()

    async def run() -> list[int]:
        return [await cache.get(n, lambda n=n: n, keep=60.0) for n in range(300)]  # type: ignore[misc]

    assert asyncio.run(run()) == list(range(300))
    assert len(cache) <= 65, "nor are all of them kept"


def test_each_answer_is_kept_as_long_as_was_said() -> None:
    now = 1000.0

    async def run() -> list[int]:
        nonlocal now
        cache, server = QueryCache(lambda: now), Server()
        server.go.set()
        found = [await cache.get("kept", server, keep=60.0)]
        now += 0.05
        await cache.get("other", lambda: 0, keep=0.01)
        return [*found, await cache.get("kept", server, keep=60.0)]

    assert asyncio.run(run()) == [1, 1]


def test_who_waits_too_long_is_told_and_the_next_has_the_answer() -> None:
    server = Server()

    async def run() -> int:
        cache = QueryCache()
        with pytest.raises(UnavailableError, match=r"no answer within 0\.1 s"):
            await cache.get("a", server, keep=60.0, timeout=0.1)
        server.go.set()
        return await cache.get("a", server, keep=60.0)

    assert asyncio.run(run()) == server.asked == 1


def test_what_it_fails_with_is_raised() -> None:
    def broken() -> None:
        raise NotFoundError("gone")

    async def run() -> None:
        with pytest.raises(NotFoundError, match="gone"):
            await QueryCache().get("a", broken, keep=1.0)

    asyncio.run(run())


def test_a_server_that_hangs_holds_up_no_exit() -> None:
    server = Server()

    async def run() -> None:
        with pytest.raises(UnavailableError):
            await QueryCache().get("a", server, keep=1.0, timeout=0.05)

    asyncio.run(run())
    assert server.wait_for(1)
    assert server.running == 1, "the exit has not waited for it"
    server.go.set()
