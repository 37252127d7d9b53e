"""Transactions by the Java client, all of which have ended, or never end."""

import re
from collections.abc import Iterator
from functools import partial

from testbed.oracle import Json
from tests.contract.corpus import Kind, Place
from tests.contract.java import body


def numbered(name: str, count: int = 5) -> list[Json]:
    return [{"value": f"{name} {n}".encode(), "key": name} for n in range(count)]


def forged(kind: int, transaction: str) -> Json:
    """A marker as a broker writes it, of a producer that is in no transaction."""
    most, least = re.findall(r"\d+", transaction)
    return {"value": b"", "marker_type": kind, "marked": [int(most), int(least)]}


def _committed_and_aborted(to: Place) -> Iterator[None]:
    """Single and batched; one ends a ledger after its messages."""
    kept, dropped, late = to.oracle.begin(), to.oracle.begin(), to.oracle.begin()
    steps = [
        ("plain", None),
        ("kept", kept),
        ("dropped", dropped),
        ("late", late),
        ("kept too", kept),
        ("dropped too", dropped),
        ("plain too", None),
    ]
    for batch in (0, 3):
        for name, transaction in steps:
            to.write(numbered(name), batch=batch, transaction=transaction)
    to.oracle.abort(dropped)
    to.oracle.commit(kept)
    to.write(numbered("after"))
    yield
    to.write(numbered("next ledger"))
    to.oracle.commit(late)
    gone = to.oracle.begin()
    to.write(numbered("gone"), transaction=gone)
    yield
    to.write(numbered("last"))
    to.oracle.abort(gone)


def _never_ended(to: Place) -> Iterator[None]:
    """Nothing behind it can be read."""
    to.write(numbered("open"), transaction=to.oracle.begin())
    to.write(numbered("behind"))
    yield from ()


def _plain_in_batches(to: Place, *, commit: bool) -> Iterator[None]:
    """Messages of no transaction in a transaction's batch."""
    first, second = to.oracle.begin(), to.oracle.begin()
    to.write(numbered("x", 1), transaction=first)  # registers the topic in it
    to.write(numbered("x", 1), transaction=second)
    messages = [
        {**message, "transaction": (first, None, second, None)[n % 4]}
        for n, message in enumerate(numbered("mixed", 12))
    ]
    to.write(messages, batch=4)
    (to.oracle.commit if commit else to.oracle.abort)(first)
    to.oracle.commit(second)
    yield from ()


def _chunks(to: Place, *, commit: bool) -> Iterator[None]:
    transaction = to.oracle.begin()
    large: list[Json] = [{"value": body(9_000)}, {"value": body(12_000)}]
    to.write(large, chunk_size=2_000, compression="LZ4", transaction=transaction)
    yield
    to.write(large[:1], chunk_size=2_000)
    (to.oracle.commit if commit else to.oracle.abort)(transaction)


KINDS = [
    Kind("transactions", 2 * 5 * 5 + 3 * 5, _committed_and_aborted, halves=True, twice=True),
    Kind("transactions-never-ended", 0, _never_ended, unread=frozenset({"parquet"})),
    *(
        Kind(
            f"transactions-in-batches-{'committed' if commit else 'aborted'}",
            14 if commit else 7,
            partial(_plain_in_batches, commit=commit),
            twice=True,
        )
        for commit in (True, False)
    ),
    Kind(
        "transactions-of-chunks-committed",
        3,
        partial(_chunks, commit=True),
        halves=True,
        twice=True,
    ),
    # The broker does not know that a chunk of a compressed message was aborted.
    Kind(
        "transactions-of-chunks-aborted",
        1,
        partial(_chunks, commit=False),
        halves=True,
        unread=frozenset({"broker"}),
    ),
]
