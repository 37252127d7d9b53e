"""Transactions against the Java client."""

from __future__ import annotations

import pytest

from testbed.oracle import Json
from tests.contract.against_java import HOT, Contract, body, check, java_rows, query_rows


def numbered(name: str, count: int = 5) -> list[Json]:
    return [{"value": f"{name} {n}".encode(), "key": name} for n in range(count)]


@pytest.mark.parametrize("batch", [0, 3], ids=["single", "batched"])
def test_transactions(contract: Contract, topic_name: str, batch: int) -> None:
    oracle = contract.oracle

    def write(name: str, transaction: str | None = None) -> None:
        oracle.write(topic_name, numbered(name), batch=batch, transaction=transaction)

    kept, dropped, late = oracle.begin(), oracle.begin(), oracle.begin()
    write("plain")
    write("kept", kept)
    write("dropped", dropped)
    write("late", late)
    write("kept too", kept)
    write("dropped too", dropped)
    write("plain too")
    oracle.abort(dropped)
    oracle.commit(kept)
    write("after")
    contract.admin.seal(topic_name)
    write("next ledger")
    oracle.commit(late)
    java = contract.holds(topic_name, tiers=HOT)
    assert len(java) == 7 * 5
    gone = oracle.begin()
    write("gone", gone)
    contract.admin.seal(topic_name)
    contract.admin.seal(topic_name)
    write("last")
    oracle.abort(gone)
    assert len(contract.holds(topic_name)) == 8 * 5


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
    check(query_rows(contract.config, topic_name), java, topic_name, "query")
    oracle.commit(still)
    assert len(contract.holds(topic_name)) == 25


def test_transaction_never_ended(contract: Contract, topic_name: str) -> None:
    contract.oracle.write(topic_name, numbered("open"), transaction=contract.oracle.begin())
    contract.oracle.write(topic_name, numbered("behind"))
    assert not contract.holds(topic_name, tiers=HOT)


@pytest.mark.parametrize("commit", [True, False], ids=["committed", "aborted"])
def test_plain_messages_in_a_transactions_batch(
    contract: Contract, topic_name: str, commit: bool
) -> None:
    oracle = contract.oracle
    one, other = oracle.begin(), oracle.begin()
    oracle.write(topic_name, numbered("x", 1), transaction=one)  # registers the topic in it
    oracle.write(topic_name, numbered("x", 1), transaction=other)
    messages = [
        {**message, "transaction": (one, None, other, None)[n % 4]}
        for n, message in enumerate(numbered("mixed", 12))
    ]
    oracle.write(topic_name, messages, batch=4)
    (oracle.commit if commit else oracle.abort)(one)
    oracle.commit(other)
    contract.holds(topic_name)


@pytest.mark.parametrize("commit", [True, False], ids=["committed", "aborted"])
def test_chunks_in_a_transaction(contract: Contract, topic_name: str, commit: bool) -> None:
    oracle = contract.oracle
    transaction = oracle.begin()
    large = [{"value": body(9_000)}, {"value": body(12_000)}]
    oracle.write(topic_name, large, chunk_size=2_000, compression="LZ4", transaction=transaction)
    contract.admin.seal(topic_name)
    oracle.write(topic_name, large[:1], chunk_size=2_000)
    (oracle.commit if commit else oracle.abort)(transaction)
    assert len(contract.holds(topic_name)) == (3 if commit else 1)
