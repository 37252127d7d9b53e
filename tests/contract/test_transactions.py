"""Transactions that end while they are read, and markers that are not a broker's."""

import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from reader.errors import UnavailableError
from testbed.oracle import Json
from tests.contract.against_java import HOT, Contract, check
from tests.contract.corpus.topics.transactions import forged, numbered
from tests.contract.java import java_rows
from tests.contract.rows import query_rows


def test_open_transaction_at_the_end(contract: Contract, topic_name: str) -> None:
    oracle = contract.oracle
    oracle.write(topic_name, numbered("before"))
    done = oracle.begin()
    oracle.write(topic_name, numbered("done"), transaction=done)
    still = oracle.begin()
    oracle.write(topic_name, numbered("open"), transaction=still)
    oracle.write(topic_name, numbered("behind"))
    oracle.commit(done)
    assert len(contract.holds(topic_name, tiers=HOT)) == 10
    contract.admin.seal(topic_name)
    oracle.write(topic_name, numbered("next ledger"))
    assert len(contract.holds(topic_name, tiers=HOT)) == 10
    contract.offload(topic_name)
    java = java_rows(oracle, topic_name)
    check(query_rows(contract.config, topic_name), java, topic_name)
    oracle.commit(still)
    assert len(contract.holds(topic_name)) == 25


def names(java: Mapping[Any, Json]) -> Counter[str]:
    return Counter(one["key"] for one in java.values())


def buffer_stats(contract: Contract, topic: str) -> Json:
    name = topic.removeprefix("persistent://")
    found: Json = contract.admin.request("GET", f"/v3/transactions/transactionBufferStats/{name}")
    return found


def test_a_marker_that_a_producer_wrote(contract: Contract, topic_name: str) -> None:
    """It is stored; to the broker, which has its own account, the transaction goes on with it."""
    oracle = contract.oracle
    kept = oracle.begin()
    oracle.write(topic_name, numbered("plain"))
    oracle.write(topic_name, numbered("kept"), transaction=kept)
    oracle.commit(kept)
    ((ledger, entry, *_),) = oracle.write(topic_name, [forged(22, kept)])
    stored = contract.admin.internal_stats(topic_name)["lastConfirmedEntry"]
    assert stored == f"{ledger}:{entry}"
    stats = buffer_stats(contract, topic_name)
    assert (stats["totalAbortedTransactions"], stats["ongoingTxnSize"]) == (0, 1)
    oracle.write(topic_name, numbered("behind"))
    assert names(contract.holds(topic_name, tiers=HOT)) == {"plain": 5, "kept": 5}


def test_a_marker_that_the_broker_believes(contract: Contract, topic_name: str) -> None:
    """It may, if it loads the topic before it has taken a snapshot: for consumers as for us."""
    oracle = contract.oracle
    kept = oracle.begin()
    oracle.write(topic_name, numbered("plain"))
    oracle.write(topic_name, numbered("kept"), transaction=kept)
    oracle.commit(kept)
    oracle.write(topic_name, [forged(22, kept)])
    contract.admin.seal(topic_name)
    found = names(contract.holds(topic_name))
    assert found in ({"plain": 5}, {"plain": 5, "kept": 5})


@pytest.mark.long
def test_unloads_while_it_is_queried_and_offloaded(contract: Contract, topic_name: str) -> None:
    """A broker that loads a topic knows neither its open transactions nor the aborted ones."""
    oracle = contract.oracle
    dropped, still = [oracle.begin() for _ in range(20)], oracle.begin()
    oracle.write(topic_name, numbered("plain"))
    for number, one in enumerate(dropped):
        oracle.write(topic_name, numbered(f"dropped {number}", 2), transaction=one)
    contract.admin.seal(topic_name)  # no marker is where the messages are
    oracle.write(topic_name, numbered("seen"))
    for one in dropped:
        oracle.abort(one)
    contract.admin.seal(topic_name)
    oracle.write(topic_name, numbered("open"), transaction=still)
    oracle.write(topic_name, numbered("behind"))
    contract.admin.seal(topic_name)
    java = java_rows(oracle, topic_name)
    assert len(java) == 10

    over = threading.Event()

    def unload() -> None:
        while not over.wait(1):
            contract.admin.unload(topic_name)

    unloading = threading.Thread(target=unload)
    unloading.start()
    answers = refusals = 0
    try:
        began = time.monotonic()
        # How often a topic is ready between two unloads depends on the machine.
        while time.monotonic() < began + (10 if answers else 120):
            try:
                check(query_rows(contract.config, topic_name), java, topic_name)
                answers += 1
            except UnavailableError:
                refusals += 1
        while True:
            try:
                contract.offload(topic_name)
                break
            except UnavailableError:
                refusals += 1
    finally:
        over.set()
        unloading.join()
    print(f"{answers} answers, {refusals} refusals")
    assert answers
    contract.admin.seal(topic_name)
    check(query_rows(contract.config, topic_name), java, topic_name)
    oracle.commit(still)
    assert len(contract.holds(topic_name)) == 20
