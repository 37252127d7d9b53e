"""The rules of ``LedgerReads``: what each event makes it request, without sockets and time.

A rule has a line for each step: events, and the actions that follow them. ``a: 0-5`` is a range
read, ``a: 0 1`` are entry reads. Of the striped ledger bookie b holds entries 0 and 1 whole, a 2
and 3, c 4 and 5.
"""

import itertools
from collections.abc import Iterable
from dataclasses import replace

import pytest

from reader.bookkeeper.reads import BookieHealth, LedgerReads, SilentBookies
from reader.bookkeeper.reads.read_messages import (
    BookieFailure,
    Deliver,
    Disconnect,
    EntryRead,
    ReadKind,
    Send,
    Wait,
)
from reader.errors import ConfigurationError, PulsarLakeError, UnavailableError
from reader.model import LedgerMetadata
from tests.unit.bookkeeper import stored_ledgers
from tests.unit.bookkeeper.fake_bookie import stored
from tests.unit.bookkeeper.memory_bookies import Reply, arrival_of

WHOLE = stored_ledgers.ledger_of(7, 6, "abc", 3, length=600)
SOLE = stored_ledgers.ledger_of(7, 6, "a", 1, length=600)
STRIPED = stored_ledgers.ledger_of(7, 6, "abc", 2, length=600)


class Steps:
    """One read of entries 0 to 5."""

    def __init__(self, ledger: LedgerMetadata) -> None:
        self.now = 1000.0
        self.reads = LedgerReads(
            [(ledger, 0, 5)], BookieHealth(10.0, SilentBookies()), itertools.count(1)
        )
        self.requests: dict[tuple[str, ReadKind, int], int] = {}
        self.wait = 0.0

    def actions(self) -> list[str]:
        """What is to be done until the next wait, or the end."""
        texts: list[str] = []
        try:
            while not isinstance(action := self.reads.next_action(self.now), Wait):
                if action is None:
                    return [*texts, "end"]
                if isinstance(action, Deliver):
                    ids = action.block.entry_ids.tolist()
                    damaged = "".join(f" but {row}" for row in action.block.damaged)
                    texts.append(f"block {ids[0]}-{ids[-1]}{damaged}")
                    continue
                if isinstance(action, Disconnect):
                    texts.append(f"close {action.bookie}")
                    continue
                for read in action.reads:
                    if isinstance(read, EntryRead):
                        for entry, number in zip(read.entries, read.requests, strict=True):
                            self.requests[action.bookie, ReadKind.ENTRY, int(entry)] = int(number)
                        texts.append(f"{action.bookie}: {' '.join(map(str, read.entries))}")
                    else:
                        self.requests[action.bookie, ReadKind.RANGE, read.first] = read.request
                        last = read.first + read.max_entries - 1
                        texts.append(f"{action.bookie}: {read.first}-{last}")
            self.wait = action.seconds
        except PulsarLakeError as error:
            texts.append(f"{type(error).__name__}: {error.message}")
        return texts

    def happens(self, event: str) -> None:
        """An event: bookies that answer or fail, or time that passes."""
        match event.split():
            case ["start"]:
                pass
            case [seconds, "s", "pass"]:
                self.now += float(seconds)
                self.reads.end_wait(self.now)
            case [bookie, "gives", "range", span, *change]:
                first, last = map(int, span.split("-"))
                content = stored_ledgers.content_of(
                    body(entry, change) for entry in range(first, last + 1)
                )
                self.answer(bookie, ReadKind.RANGE, [(first, Reply(content))])
            case [bookie, "gives", "bad", entry, *change]:
                self.answer(bookie, ReadKind.ENTRY, [(int(entry), Reply(body(int(entry), change)))])
            case [bookie, "gives", *entries]:
                replies = [(int(entry), Reply(body(int(entry)))) for entry in entries]
                self.answer(bookie, ReadKind.ENTRY, replies)
            case [bookie, "says", status, "to", "range"]:
                self.answer(bookie, ReadKind.RANGE, [(0, Reply(status=int(status)))])
            case [bookie, "says", status, "to", entry]:
                self.answer(bookie, ReadKind.ENTRY, [(int(entry), Reply(status=int(status)))])
            case [bookie, "breaks", *flags]:
                error = UnavailableError(f"bookie {bookie} broke")
                failure = BookieFailure(bookie, error, **dict.fromkeys(flags, True))
                self.reads.receive(failure, self.now)
            case [bookie, "refuses", kind]:
                refusal = ConfigurationError(f"bookie {bookie} refuses")
                self.reads.refuse(bookie, ReadKind(kind), refusal)
            case _:
                raise AssertionError(event)

    def answer(self, bookie: str, kind: ReadKind, replies: Iterable[tuple[int, Reply]]) -> None:
        numbered = [(self.requests[bookie, kind, entry], reply) for entry, reply in replies]
        self.reads.receive(arrival_of(bookie, kind, numbered), self.now)


def body(entry: int, change: Iterable[str] = ()) -> bytes:
    """An entry as it is stored; with ``change`` it fails its digest."""
    whole = bytearray(stored(7, entry, stored_ledgers.data_of(7, entry)))
    whole[40] ^= int("".join(change) or 0)
    return bytes(whole)


REQUESTED = "start -> a: 2 3; b: 0 1; c: 4 5"
REST = "b gives 0 1, c gives 4 5, a gives 2 ->"
LOST = (
    "CorruptError: entry 7:3 is lost: all its replicas answer without it "
    "(bookie a: no such entry, bookie b: no such entry)"
)
RANGE_RULES = {
    "the answer to a range read is the block": "a gives range 0-5 -> block 0-5; end",
    "what a short answer leaves is requested before the block is delivered": """
        a gives range 0-3 -> b: 4-5; block 0-3
        b gives range 4-5 -> block 4-5; end""",
    "a range with an error is read entry by entry, of the bookie that holds all": """
        a says 2 to range -> c: 0 1 2 3 4 5
        c gives 0 1 2 3 4 5 -> block 0-5; end""",
    "a range with a bad digest is read entry by entry": "a gives range 0-5 1 -> c: 0 1 2 3 4 5",
    "a range of a bookie that breaks is read entry by entry": "a breaks -> c: 0 1 2 3 4 5",
    "a kept connection that breaks is opened again, once": """
        a breaks was_kept -> a: 0-5
        a breaks -> c: 0 1 2 3 4 5""",
    "a kept connection that is silent is not opened again": """
        a breaks was_kept is_silent -> c: 0 1 2 3 4 5""",
    "a bookie that refuses the client fails the range": """
        a refuses range -> ConfigurationError: bookie a refuses""",
    "a late range is requested elsewhere too, and the first answer counts": """
        0.24 s pass ->
        0.01 s pass -> b: 0-5
        0.05 s pass ->
        b gives range 0-5 -> block 0-5; end""",
    "a late range is read entry by entry once no other answer is outstanding": """
        0.25 s pass -> b: 0-5
        a says 2 to range ->
        b says 2 to range -> c: 0 1 2 3 4 5""",
    "a silent bookie is given up after the timeout": """
        0.25 s pass -> b: 0-5
        9.74 s pass ->
        0.02 s pass -> close a; c: 0-5""",
}
SOLE_RULES = {
    "a bookie that closes the connection at a range read is asked for entries": """
        a breaks rejects_ranges -> a: 0 1 2 3 4 5""",
    "a sole replica that is late is waited for, and asked for entries after the timeout": """
        0.25 s pass ->
        9.74 s pass ->
        0.01 s pass -> close a; a: 0 1 2 3 4 5""",
}
ENTRY_RULES = {
    "runs of entries go to the bookie that holds them whole": """
        a gives 2 3 ->
        b gives 0 1 ->
        c gives 4 5 -> block 0-5; end""",
    "an entry that a replica lacks is requested from the next one": f"""
        {REST}
        a says 403 to 3 -> b: 3
        b gives 3 -> block 0-5; end""",
    "an entry that all replicas lack is lost": f"""
        a says 403 to 3 -> b: 3
        b says 403 to 3 -> {LOST}""",
    "a ledger that all replicas lack is not found": """
        a says 402 to 3 -> b: 3
        b says 402 to 3 -> NotFoundError: no replica has ledger 7""",
    "an entry that a replica may have is unavailable": """
        a says 501 to 3 -> b: 3
        b breaks -> a: 0; c: 1; UnavailableError: no replica gives entry 7:3 \
            (bookie a: error, bookie b broke)""",
    "entries of a bookie that breaks are requested from the next replicas": """
        a breaks -> c: 2; b: 3""",
    "entries of a kept connection that breaks are requested again, once": """
        a breaks was_kept -> a: 2 3
        a breaks -> c: 2; b: 3""",
    "a bookie that refuses the client fails its entries": """
        a refuses entry -> ConfigurationError: bookie a refuses""",
    "a bookie that requires authentication fails its entries": """
        a says 502 to 2 -> ConfigurationError: bookie a requires authentication""",
    "late entries are requested elsewhere too, and the first answer counts": """
        b gives 0 1, c gives 4 5 ->
        0.25 s pass -> c: 2; b: 3
        0.05 s pass ->
        c gives 2 ->
        a gives 2 3 -> block 0-5; end""",
    "a late replica that lacks an entry counts as one that lacks it": f"""
        {REST}
        0.25 s pass -> b: 3
        b says 403 to 3 ->
        a says 403 to 3 -> {LOST}""",
    "an entry with a bad digest is requested from the next replica": f"""
        {REST}
        a gives bad 3 1 -> b: 3
        b gives 3 -> block 0-5; end""",
    "an entry is damaged if a replica gives the same bad bytes twice": f"""
        {REST}
        a gives bad 3 1 -> b: 3
        b gives bad 3 2 -> a: 3
        a gives bad 3 1 -> b: 3
        b gives bad 3 4 -> block 0-5 but 3; end""",
    "an entry whose bytes always change is unavailable": f"""
        {REST}
        a gives bad 3 1 -> b: 3
        b gives bad 3 2 -> a: 3
        a gives bad 3 4 -> b: 3
        b gives bad 3 8 -> UnavailableError: no replica gives entry 7:3 twice in the same way \
            (bookie a: digest mismatch, bookie b: digest mismatch)""",
    "an entry whose bytes always change is unavailable, also if the other replica lacks it": f"""
        {REST}
        a gives bad 3 1 -> b: 3
        b says 403 to 3 -> a: 3
        a gives bad 3 2 -> b: 3
        b says 402 to 3 -> UnavailableError: no replica gives entry 7:3 twice in the same way \
            (bookie a: digest mismatch, bookie b: no such ledger)""",
    "an entry that is bad on one replica, and which the other lacks, is requested again": f"""
        {REST}
        a gives bad 3 1 -> b: 3
        b says 403 to 3 -> a: 3
        a gives 3 -> block 0-5; end""",
    "a damaged entry is not delivered while a replica may have it": f"""
        {REST}
        a gives bad 3 1 -> b: 3
        b says 501 to 3 -> a: 3
        a gives bad 3 1 -> b: 3
        b says 501 to 3 -> UnavailableError: no replica gives entry 7:3 \
            (bookie a: digest mismatch, bookie b: error)""",
}
RULES = {
    **{name: (WHOLE, "start -> a: 0-5", steps) for name, steps in RANGE_RULES.items()},
    **{name: (SOLE, "start -> a: 0-5", steps) for name, steps in SOLE_RULES.items()},
    **{name: (STRIPED, REQUESTED, steps) for name, steps in ENTRY_RULES.items()},
}


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule: str) -> None:
    ledger, start, steps = RULES[rule]
    read = Steps(ledger)
    for line in [start, *steps.strip().splitlines()]:
        events, actions = " ".join(line.split()).split("->")
        for event in events.split(","):
            read.happens(event)
        assert read.actions() == [one.strip() for one in actions.split(";") if one.strip()], line


def test_time_in_which_nobody_can_receive_does_not_count() -> None:
    """The caller needs long to send, and to use a block; the bookie answers 5 s after that."""
    steps = Steps(SOLE)
    assert isinstance(steps.reads.next_action(steps.now), Send)
    steps.now += 100
    assert steps.actions() == []
    assert steps.wait == 0.25
    ledgers = [stored_ledgers.ledger_of(number, 1, ("0",), 1) for number in (7, 8)]
    script = stored_ledgers.range_script(stored_ledgers.stored_by(ledgers)[0])
    late = {"0": lambda *of: replace(script(*of), after=105.0 if of[0] == 8 else 0.0)}
    bookies = stored_ledgers.memory_bookies(ledgers, ranges=late)
    blocks = bookies.read(*((ledger, 0, 0) for ledger in ledgers))
    first = next(blocks)
    bookies.now += 100
    assert stored_ledgers.entries_of([first, *blocks]) == stored_ledgers.expected(
        *((ledger, 0, 0) for ledger in ledgers)
    )
    assert not bookies.asked["0"]
