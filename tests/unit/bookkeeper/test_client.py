"""The bookie client against bookies that fail on demand: next replica, right rows, clear errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace

import pytest

from reader.bookkeeper import BookKeeperClient
from reader.errors import ConfigurationError, CorruptError, NotFoundError, UnavailableError
from reader.model import EntryBlock, LedgerMetadata
from tests.unit.bookkeeper.fake_bookie import FakeBookie, Script, answer, stored

LEDGER = 7
OK, NOLEDGER, NOENTRY, EIO = 0, 402, 403, 501


def data_of(entry: int) -> bytes:
    return f"entry {entry} ".encode() * (1 + entry % 50)


def good(request: int, ledger: int, entry: int) -> bytes:
    return answer(request, OK, ledger, entry, stored(ledger, entry, data_of(entry)))


def status(code: int) -> Script:
    return lambda request, ledger, entry: answer(request, code, ledger, entry)


def silent(request: int, ledger: int, entry: int) -> None:
    return None


def reset(request: int, ledger: int, entry: int) -> bytes:
    raise ConnectionError


def flipped(request: int, ledger: int, entry: int) -> bytes:
    body = bytearray(stored(ledger, entry, data_of(entry)))
    body[40] ^= 0x10
    return answer(request, OK, ledger, entry, bytes(body))


def another_entry(request: int, ledger: int, entry: int) -> bytes:
    return answer(request, OK, ledger, entry, stored(ledger, entry + 1, data_of(entry + 1)))


def another_ledger(request: int, ledger: int, entry: int) -> bytes:
    return answer(request, OK, ledger, entry, stored(ledger + 1, entry, data_of(entry)))


def truncated(request: int, ledger: int, entry: int) -> bytes:
    return answer(request, OK, ledger, entry, stored(ledger, entry, data_of(entry))[:20])


def garbage(request: int, ledger: int, entry: int) -> bytes:
    return b"\x00\x00\x00\x08" + b"\xff" * 8


def oversize(request: int, ledger: int, entry: int) -> bytes:
    return b"\x7f\xff\xff\xff" + b"x" * 100


def nobody_asked(request: int, ledger: int, entry: int) -> bytes:
    return answer(request + 10_000, EIO, ledger, entry) + good(request, ledger, entry)


def ledger_of(bookies: Sequence[str], write_quorum: int = 2) -> LedgerMetadata:
    return LedgerMetadata(
        LEDGER, "CLOSED", len(bookies), write_quorum, 2, 299, "CRC32C", ((0, tuple(bookies)),)
    )


def read(bookies: Sequence[str], last: int = 299, quorum: int = 2, **options: float) -> list[bytes]:
    found = []
    with BookKeeperClient(timeout=options.get("timeout", 30.0)) as client:
        blocks = client.read(ledger_of(bookies, quorum), 0, last, block_bytes=2000)
        for block in blocks:
            assert block.ledger_id == LEDGER
            assert not block.damaged
            for at, size in zip(block.offsets, block.lengths, strict=True):
                found.append(block.arena[at : at + size].tobytes())
    return found


stored(0, 0, b"")  # compiles the checksum, before any timeout counts
EXPECTED = [data_of(entry) for entry in range(300)]


@pytest.mark.usefixtures("nobody_is_late")
def test_striped_entries_come_in_order_from_their_own_replicas() -> None:
    with ExitStack() as stack:
        three = [stack.enter_context(FakeBookie(good)) for _ in range(3)]
        assert read([one.address for one in three], timeout=120) == EXPECTED
        for number, bookie in enumerate(three):
            # The runs of two that it holds whole.
            held = [entry for entry in range(300) if (entry - entry % 2 + 1) % 3 == number]
            assert sorted(bookie.asked) == held


FAULTS: list[Callable[[int, int, int], bytes | None]] = [
    status(NOENTRY),
    status(NOLEDGER),
    status(EIO),
    silent,
    reset,
    flipped,
    another_entry,
    another_ledger,
    truncated,
    garbage,
    oversize,
    nobody_asked,
]


@pytest.mark.parametrize("fault", FAULTS)
def test_one_bad_bookie_of_three_changes_nothing(fault: Script) -> None:
    with ExitStack() as stack:
        scripts: list[Script] = [good, fault, good]
        three = [stack.enter_context(FakeBookie(script)) for script in scripts]
        assert read([one.address for one in three]) == EXPECTED


def test_a_bookie_that_fails_in_the_middle() -> None:
    def dies(request: int, ledger: int, entry: int) -> bytes:
        if entry > 150:
            raise ConnectionError
        return good(request, ledger, entry)

    with FakeBookie(dies) as first, FakeBookie(good) as second, FakeBookie(good) as third:
        assert read([first.address, second.address, third.address]) == EXPECTED


@pytest.mark.usefixtures("nobody_is_late")
def test_a_bookie_that_is_down_is_waited_for_once() -> None:
    """For half of the timeout: then others are asked, and it is not for the next reads either."""
    with (
        FakeBookie(silent) as first,
        FakeBookie(good) as second,
        FakeBookie(good) as third,
        BookKeeperClient(timeout=8.0) as client,
    ):
        ledger = ledger_of([first.address, second.address, third.address], 2)
        asked = []
        for _ in range(3):
            assert sum(len(block) for block in client.read(ledger, 0, 299)) == 300
            asked.append(len(first.asked))
        assert first.connections == 1
        assert asked == [asked[0]] * 3 != [0] * 3


def test_ensemble_changes_are_followed() -> None:
    with FakeBookie(good) as old, FakeBookie(good) as new:
        ledger = LedgerMetadata(
            LEDGER, "CLOSED", 1, 1, 1, 9, "CRC32C", ((0, (old.address,)), (4, (new.address,)))
        )
        with BookKeeperClient(timeout=30.0) as client:
            list(client.read(ledger, 0, 9))
        assert (sorted(old.asked), sorted(new.asked)) == ([0, 1, 2, 3], [4, 5, 6, 7, 8, 9])


def test_a_ledger_that_no_replica_has_is_not_found() -> None:
    with FakeBookie(status(NOLEDGER)) as one, FakeBookie(status(NOLEDGER)) as two:
        with pytest.raises(NotFoundError, match="no replica has ledger 7"):
            read([one.address, two.address])


def test_a_lost_entry_is_an_error_and_never_fewer_rows() -> None:
    def without_100(request: int, ledger: int, entry: int) -> bytes:
        if entry == 100:
            return answer(request, NOENTRY, ledger, entry)
        return good(request, ledger, entry)

    with FakeBookie(without_100) as one, FakeBookie(without_100) as two:
        each = [f"bookie {bookie.address}: no such entry" for bookie in (one, two)]
        with pytest.raises(CorruptError, match="7:100 is lost") as caught:
            read([one.address, two.address])
    assert all(text in caught.value.message for text in each)


def test_no_answer_at_all_is_unavailable() -> None:
    with FakeBookie(reset) as one, FakeBookie(status(NOENTRY)) as two:
        with pytest.raises(UnavailableError, match=r"no replica gives .*: no such entry"):
            read([one.address, two.address])


def test_what_every_replica_has_damaged_is_delivered_and_named() -> None:
    def bad_5(request: int, ledger: int, entry: int) -> bytes:
        return (flipped if entry == 5 else good)(request, ledger, entry)

    with (
        FakeBookie(bad_5) as one,
        FakeBookie(bad_5) as two,
        BookKeeperClient(timeout=30.0) as client,
    ):
        found = list(client.read(ledger_of([one.address, two.address]), 0, 9))
    damaged = {int(b.entry_ids[row]): why for b in found for row, why in b.damaged.items()}
    assert damaged == {5: "digest mismatch on every replica"}
    assert [int(entry) for block in found for entry in block.entry_ids] == list(range(10))


def changing(times: int) -> Script:
    """Another byte of the entry arrives changed each time; after so many ``times`` none."""
    count = iter(range(1_000_000))

    def script(request: int, ledger: int, entry: int) -> bytes:
        body = bytearray(stored(ledger, entry, data_of(entry)))
        if entry == 5 and (number := next(count)) < times:
            body[40 + number] ^= 0x10
        return answer(request, OK, ledger, entry, bytes(body))

    return script


@pytest.mark.parametrize("other", [changing(1), status(NOENTRY), status(NOLEDGER)])
def test_bytes_that_change_on_their_way_are_asked_for_again(other: Script) -> None:
    def rest(request: int, ledger: int, entry: int) -> bytes:
        return (other if entry == 5 else good)(request, ledger, entry) or b""

    with FakeBookie(changing(1)) as one, FakeBookie(rest) as two:
        assert read([one.address, two.address], 9) == [data_of(entry) for entry in range(10)]


@pytest.mark.parametrize("other", [changing(9), status(NOENTRY), status(NOLEDGER)])
def test_bytes_that_always_change_are_no_damaged_entry(other: Script) -> None:
    def rest(request: int, ledger: int, entry: int) -> bytes:
        return (other if entry == 5 else good)(request, ledger, entry) or b""

    with FakeBookie(changing(9)) as one, FakeBookie(rest) as two:
        with pytest.raises(UnavailableError, match=r"7:5 twice in the same way .*digest mismatch"):
            read([one.address, two.address], 9)


def test_damaged_on_one_and_silent_on_the_other_is_tried_again_later() -> None:
    with FakeBookie(flipped) as one, FakeBookie(reset) as two, pytest.raises(UnavailableError):
        read([one.address, two.address])


def test_the_client_is_usable_after_a_read_that_was_given_up() -> None:
    with FakeBookie(good) as one, BookKeeperClient(timeout=30.0) as client:
        ledger = ledger_of([one.address], 1)
        blocks = client.read(ledger, 0, 299, block_bytes=500)
        next(blocks)
        blocks.close()
        again = [int(e) for block in client.read(ledger, 3, 20) for e in block.entry_ids]
        assert again == list(range(3, 21))


def test_ids_that_are_no_address_need_the_map() -> None:
    with FakeBookie(good) as one:
        ledger = ledger_of(["bookie-a"], 1)
        with BookKeeperClient(addresses={"bookie-a": one.address}, timeout=30.0) as client:
            assert sum(len(block) for block in client.read(ledger, 0, 9)) == 10
        with (
            BookKeeperClient(timeout=30.0) as client,
            pytest.raises(ConfigurationError, match="bookie-a"),
        ):
            list(client.read(ledger, 0, 9))


def test_a_kept_connection_that_breaks_is_no_failure_of_the_bookie() -> None:
    """It had ended, and nobody had noticed before the next request."""
    breaks = [False]

    def script(request: int, ledger: int, entry: int) -> bytes:
        if breaks[0]:
            breaks[0] = False
            raise ConnectionError
        return good(request, ledger, entry)

    with FakeBookie(script) as one, BookKeeperClient(timeout=30.0) as client:
        ledger = ledger_of([one.address, one.address], 1)

        def entries() -> int:
            return sum(len(block) for block in client.read(ledger, 0, 9))

        assert entries() == 10
        for _ in range(3):
            client.resume()
            breaks[0] = True
            assert entries() == 10, "asked again on a new connection"
        assert one.connections == 4
        client.resume()
        assert entries() == 10
        assert one.connections == 4
        breaks[0] = True
        with pytest.raises(UnavailableError):
            entries()  # it has answered on this connection: it is the bookie


def test_a_kept_bookie_that_has_gone_is_a_failure() -> None:
    with BookKeeperClient(timeout=30.0) as client:
        with FakeBookie(good) as one:
            ledger = ledger_of([one.address, one.address], 1)
            assert len(list(client.read(ledger, 0, 0))) == 1
            one.hang_up()
        client.resume()
        with pytest.raises(UnavailableError):
            list(client.read(ledger, 0, 0))


def ids_of(blocks: Iterable[EntryBlock]) -> list[tuple[int, int]]:
    return [(block.ledger_id, int(entry)) for block in blocks for entry in block.entry_ids]


def test_ranges_come_in_their_order_and_an_error_in_its_turn() -> None:
    def script(request: int, ledger: int, entry: int) -> bytes:
        return (status(NOLEDGER) if ledger == 8 else good)(request, ledger, entry) or b""

    with (
        FakeBookie(script) as one,
        FakeBookie(script) as two,
        BookKeeperClient(timeout=30.0) as client,
    ):
        three = [replace(ledger_of([one.address, two.address]), ledger_id=n) for n in (9, 8, 7)]
        blocks = client.read_ranges([(three[0], 5, 6), (three[0], 3, 2), (three[2], 0, 1)])
        assert ids_of(blocks) == [(9, 5), (9, 6), (7, 0), (7, 1)]
        found = []
        with pytest.raises(NotFoundError, match="no replica has ledger 8"):
            for block in client.read_ranges((ledger, 1, 2) for ledger in three):
                found.append(block)
        assert ids_of(found) == [(9, 1), (9, 2)]
        assert ids_of(client.read_ranges([(three[2], 1, 2)])) == [(7, 1), (7, 2)]
