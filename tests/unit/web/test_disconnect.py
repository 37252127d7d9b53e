"""A client that has gone is waited for by nobody, whatever it asked for."""

import asyncio
import threading
from typing import Any

from offloader.model.turn import Turn
from offloader.web.connections import CancelOnDisconnect
from offloader.web.topic_detail import TopicDetail
from reader.model import Topic
from tests.unit.web.world import TOKEN, World, turn_of

OFFLOAD = "/api/topics/shop/live/orders/offload"
SEGMENTS = "/api/topics/shop/live/orders/segments"


def scope(path: str) -> dict[str, Any]:
    """Of a GET."""
    path, _, query = path.partition("?")
    return {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"host", b"127.0.0.1")],
    }


class Client:
    """Sends a body, and goes when told to. ``heard``: what it was answered."""

    def __init__(self) -> None:
        self.leaves = asyncio.Event()
        self.heard: list[Any] = []
        self._body = [b"one", b"two"]

    async def receive(self) -> dict[str, Any]:
        if self._body:
            body = self._body.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(self._body)}
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.heard.append(message)


def test_a_request_ends_with_its_client() -> None:
    go, begun = threading.Event(), threading.Semaphore(0)

    def hang() -> None:
        begun.release()
        assert go.wait(60)

    class SlowDetail(TopicDetail):
        def segments(self, topic: Topic) -> dict[str, Any]:
            hang()
            return {}

    def work(topic: Topic) -> Turn:
        assert go.wait(60)
        return turn_of(topic)

    world = World(detail=SlowDetail)
    world.storage, world.work = hang, work

    async def run(offload: str) -> None:
        clients = [Client() for _ in range(300)]
        paths = ("/readyz", SEGMENTS, f"{offload}?wait=60")
        asked = [
            asyncio.create_task(world.app(scope(paths[n % 3]), one.receive, one.send))
            for n, one in enumerate(clients)
        ]
        for _ in range(2):
            assert await asyncio.to_thread(begun.acquire, timeout=60)
        for one in clients:
            one.leaves.set()
        await asyncio.gather(*asked)
        assert not any(one.heard for one in clients), "they have waited no longer"
        queries = asyncio.all_tasks() - {asyncio.current_task()}
        assert len(queries) == 2, "the storage's and the topic's"
        go.set()
        await asyncio.wait(queries)

    with world.running():
        [made] = world.ask(("POST", OFFLOAD), authorization=f"Bearer {TOKEN}")
        try:
            world.run(run(made.json()["url"]))
        finally:
            go.set()


def test_an_answer_and_an_error_are_what_they_were() -> None:
    async def answers(scope: Any, receive: Any, send: Any) -> None:
        await send(scope)

    async def fails(scope: Any, receive: Any, send: Any) -> None:
        raise LookupError

    async def run() -> list[Any]:
        client = Client()
        await CancelOnDisconnect(answers)({"type": "http"}, client.receive, client.send)
        try:
            await CancelOnDisconnect(fails)({"type": "http"}, client.receive, client.send)
        except LookupError:
            client.heard.append("failed")
        return client.heard

    assert asyncio.run(run()) == [{"type": "http"}, "failed"]
