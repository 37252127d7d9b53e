"""Questions on behalf of those who watch: few at once, each asked once, none holds anybody up."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from offloader.web.query_cache import QueryCache
from reader.errors import NotFoundError, UnavailableError


class Server:
    """Counts who asks; answers once ``go`` is set."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.asked = self.running = self.most = 0
        self._lock = threading.Lock()

    def __call__(self) -> int:
        with self._lock:
            self.asked += 1
            self.running += 1
            self.most = max(self.most, self.running)
        assert self.go.wait(20)
        with self._lock:
            self.running -= 1
        return self.asked


def test_the_same_question_is_asked_once_and_its_answer_kept() -> None:
    server = Server()
    server.go.set()

    async def run() -> list[int]:
        cache = QueryCache()
        found = await asyncio.gather(*(cache.get("a", server, keep=0.3) for _ in range(20)))
        found.append(await cache.get("a", server, keep=0.3))
        await asyncio.sleep(0.4)
        return [*found, await cache.get("a", server, keep=0.3)]

    assert asyncio.run(run()) == [1] * 21 + [2]


def test_few_run_at_once_and_too_many_are_refused() -> None:
    server = Server()

    async def run() -> list[int | BaseException]:
        cache = QueryCache()
        waiting = [asyncio.create_task(cache.get(n, server, keep=1.0)) for n in range(64)]
        while server.asked < 4:
            await asyncio.sleep(0.01)
        with pytest.raises(UnavailableError, match="too many questions"):
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
    async def run() -> list[int]:
        cache, server = QueryCache(), Server()
        server.go.set()
        found = [await cache.get("kept", server, keep=60.0)]
        await asyncio.sleep(0.05)
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

    began = time.monotonic()
    asyncio.run(run())
    assert time.monotonic() - began < 10
    assert server.running == 1
    server.go.set()
