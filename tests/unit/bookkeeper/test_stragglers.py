"""Bookies that are late, stall in the middle of an answer, or trickle."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from reader.bookkeeper import BookKeeperClient, connection
from reader.errors import CorruptError
from testbed.security import Authority
from tests.unit.bookkeeper.fake_bookie import (
    FakeBookie,
    Script,
    SlowScript,
    Stalling,
)
from tests.unit.bookkeeper.stored_ledgers import (
    Store,
    batch,
    entries_of,
    expected,
    ledger_of,
    single,
    stored_by,
)


def late(script: Script, when: Callable[[int], bool], gate: threading.Event) -> Script:
    """Some answers wait until the gate opens."""

    def waits(request: int, ledger: int, entry: int) -> bytes | None:
        if when(entry):
            gate.wait(60)
        return script(request, ledger, entry)

    return waits


def test_what_is_late_is_asked_elsewhere_and_the_late_answer_is_dropped() -> None:
    ledger = ledger_of(7, 600)
    gate = threading.Event()
    stores = stored_by([ledger])
    with ExitStack() as stack:
        scripts = [single(store) for store in stores]
        scripts[0] = late(scripts[0], lambda entry: entry > 200, gate)
        made = [stack.enter_context(FakeBookie(script)) for script in scripts]
        addresses = {str(n): bookie.address for n, bookie in enumerate(made)}
        client = stack.enter_context(BookKeeperClient(addresses=addresses, timeout=60.0))
        blocks = client.read(ledger, 0, 599, block_bytes=20_000)
        found = [next(blocks)]
        while found[-1].entry_ids[-1] < 400:
            found.append(next(blocks))
        gate.set()  # the answers that others gave come after all
        found += blocks
        assert entries_of(found) == expected((ledger, 0, 599))
        assert not client.pool.is_well("0") or len(made[0].asked) >= 100


@pytest.mark.parametrize("begins", [0, 10, 36, 500])
@pytest.mark.parametrize("trickles", [False, True])
def test_a_whole_range_that_is_late_is_asked_elsewhere(begins: int, trickles: bool) -> None:
    """It stalls before its answer, in the header, behind it or in an entry, or trickles on."""
    ledger = ledger_of(7, 300, ((0, ("0", "1")),))
    gate = threading.Event()
    stores = stored_by([ledger])

    def slow(request: int, ledger: int, first: int, entries: int, size: int) -> Iterator[bytes]:
        whole = batch(stores[0])(request, ledger, first, entries, size)
        assert whole is not None
        at = begins
        yield whole[:at]
        while trickles and at < len(whole) - 1 and not gate.wait(0.01):
            yield whole[at : at + 1]
            at += 1
        gate.wait(200)
        yield whole[at:]

    with (
        FakeBookie(single(stores[0]), slow) as one,
        FakeBookie(single(stores[1]), batch(stores[1])) as two,
        BookKeeperClient(addresses={"0": one.address, "1": two.address}, timeout=240.0) as client,
    ):
        begun = time.monotonic()
        blocks = client.read(ledger, 0, 299, block_bytes=3000)
        assert entries_of(blocks) == expected((ledger, 0, 299))
        assert time.monotonic() - begun < 110, "late after half of the timeout at most"
        assert one.asked == two.asked == [], "it was read by the range all the same"
        assert client.pool.is_fine("0"), "late is not failed"
        assert not client.pool.is_well("0")
        gate.set()


@pytest.mark.parametrize("quorum", [2, 3])
@pytest.mark.parametrize("tls", [False, True])
def test_a_bookie_that_stalls_within_a_frame_or_a_record_of_tls(
    quorum: int, tls: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is waited for, what the others have sent is read."""
    server = None
    if tls:
        authority = Authority(tmp_path)
        server = authority.sign("bookie").server_context()
        trusting = ssl.create_default_context(cafile=authority.certificate)
        opened = partial(trusting.wrap_socket, server_hostname="127.0.0.1")
        monkeypatch.setattr(connection, "open_session", lambda plain, *_: opened(plain))
    ledger = ledger_of(7, 3000, ((0, ("0", "1", "2")),), quorum)
    with ExitStack() as stack:
        made = [
            stack.enter_context(FakeBookie(single(one), batch(one), server))
            for one in stored_by([ledger])[:3]
        ]
        addresses = {str(n): bookie.address for n, bookie in enumerate(made)}
        addresses["0"] = stack.enter_context(Stalling(addresses["0"], 5000)).address
        client = stack.enter_context(BookKeeperClient(addresses=addresses, timeout=240.0))
        begun = time.monotonic()
        blocks = client.read(ledger, 0, 2999, block_bytes=60_000)
        assert entries_of(blocks) == expected((ledger, 0, 2999))
        assert time.monotonic() - begun < 110
        assert all(map(client.pool.is_fine, addresses)), "late is not failed"


def slowly(store: Store, parts: int, pause: float) -> SlowScript:
    """Each answer comes in so many parts, with a pause (seconds) behind each."""
    wait = threading.Event()

    def slow(request: int, ledger: int, first: int, entries: int, size: int) -> Iterator[bytes]:
        whole = batch(store)(request, ledger, first, entries, size)
        assert whole is not None
        step = 1 + len(whole) // parts
        for at in range(0, len(whole), step):
            yield whole[at : at + step]
            wait.wait(pause)

    return slow


def test_a_range_that_arrives_slowly_is_waited_for_where_nobody_else_has_it() -> None:
    """A bookie is silent when nothing arrives, not while a large answer takes long."""
    ledger = ledger_of(7, 1200, ((0, ("0",)),), 1)
    store = stored_by([ledger])[0]
    with (
        FakeBookie(single(store), slowly(store, 10, 0.75)) as one,
        BookKeeperClient(addresses={"0": one.address}, timeout=6.0) as client,
    ):
        assert entries_of(client.read(ledger, 0, 1199)) == expected((ledger, 0, 1199))
        assert (len(one.batches), one.asked) == (1, [])


def test_a_bookie_that_trickles_is_as_good_as_silent() -> None:
    ledger = ledger_of(7, 30, ((0, ("0",)),), 1)
    store = stored_by([ledger])[0]
    with (
        FakeBookie(single(store), slowly(store, 4000, 0.05)) as one,
        BookKeeperClient(addresses={"0": one.address}, timeout=6.0) as client,
    ):
        begun = time.monotonic()
        assert entries_of(client.read(ledger, 0, 29)) == expected((ledger, 0, 29))
        assert time.monotonic() - begun < 100, "the whole range would take two minutes"
        assert len(one.asked) == 30, "it was asked for each entry by itself"


def test_where_there_is_no_other_replica_what_is_late_is_waited_for() -> None:
    ledger = ledger_of(7, 30, ((0, ("0", "1")),), 1)
    stores = stored_by([ledger])
    gate = threading.Event()
    with (
        FakeBookie(late(single(stores[0]), lambda entry: entry == 10, gate)) as one,
        FakeBookie(single(stores[1])) as two,
        BookKeeperClient(addresses={"0": one.address, "1": two.address}, timeout=60.0) as client,
    ):
        threading.Timer(0.6, gate.set).start()
        assert entries_of(client.read(ledger, 0, 29)) == expected((ledger, 0, 29))
        assert len(one.asked) == len(two.asked) == 15


def test_a_late_replica_that_lacks_the_entry_counts_as_one_that_lacks_it() -> None:
    ledger = ledger_of(7, 6)
    stores = stored_by([ledger])
    for store in stores:
        store.pop((7, 4), None)
    gate = threading.Event()
    with ExitStack() as stack:
        scripts = [single(store) for store in stores]
        scripts[2] = late(scripts[2], lambda entry: entry == 4, gate)
        made = [stack.enter_context(FakeBookie(script)) for script in scripts]
        addresses = {str(n): bookie.address for n, bookie in enumerate(made)}
        client = stack.enter_context(BookKeeperClient(addresses=addresses, timeout=60.0))
        threading.Timer(0.6, gate.set).start()
        with pytest.raises(CorruptError, match="7:4 is lost"):
            list(client.read(ledger, 0, 5))
