"""Random types of each client's language, in JSON and AVRO: each row is what the client reads.

The clients encode without a broker. A client whose tools are not installed is skipped.
"""

from collections.abc import Callable

import pytest

from testbed.clients import ClientTopic, go_topics, java_topics, node_topics, python_topics
from tests.clients.comparison import differences
from tests.clients.tools import skip_without_tools

Topics = Callable[[int, int, int], list[ClientTopic]]
"""Seed, schemas and messages of each."""

CLIENTS: dict[str, Topics] = {
    "java": java_topics,
    "python": python_topics,
    "node": node_topics,
    "go": go_topics,
}
# Compiling the Go client takes a minute the first time.
_QUICK = [pytest.param(name, marks=[pytest.mark.long] if name == "go" else []) for name in CLIENTS]


def _check(client: str, seed: int, schemas: int, messages: int) -> None:
    with skip_without_tools():
        topics = CLIENTS[client](seed, schemas, messages)
    assert sum(len(topic.messages) for topic in topics) > schemas * messages * 0.8
    assert not [line for topic in topics for line in differences(topic)]


@pytest.mark.parametrize("client", _QUICK)
def test_rows_are_what_the_client_reads(client: str) -> None:
    _check(client, seed=1, schemas=20, messages=10)


@pytest.mark.long
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("client", CLIENTS)
def test_rows_of_many_types(client: str, seed: int) -> None:
    _check(client, seed, schemas=200, messages=20)
