"""What a commit says of a partition, by the ``txn`` actions in the log (docs/formats.md).

Which ledgers are in the table, which chunked messages were given up, and which ledgers that were
deleted before it stepped over.
"""

from collections.abc import Collection, Mapping
from copy import copy
from typing import Any

from testbed.simulation.chunks import incomplete_upto
from testbed.simulation.ledgers import Ledger, ManagedLedger

_SAID = ("watermark", "lookback", "expected", "stepped_over", "given_up")


def said_of(ml: ManagedLedger) -> dict[str, Any]:
    """What commits have said of it until now: for ``of_old_copy``."""
    found = {name: copy(getattr(ml, name)) for name in _SAID}
    return found | {"cold": {one.id for one in ml.ledgers if one.cold}}


def of_old_copy(ml: ManagedLedger, said: Mapping[str, Any] | None) -> list[Ledger]:
    """The table is back at ``said`` (None: it knew nothing of it); ledgers that are nowhere now,
    but count as being in the table still, as nobody may do without them."""
    new = ManagedLedger("", 0, "")
    for name in _SAID:
        setattr(ml, name, copy(said[name]) if said else getattr(new, name))
    gone = [one for one in ml.ledgers if one.cold and not (said and one.id in said["cold"])]
    for one in gone:
        one.cold = one.deleted
    return [one for one in gone if one.deleted]


def note_commit(
    ml: ManagedLedger, said: Mapping[str, int], seen: Collection[tuple[str, int]]
) -> set[bytes]:
    """Note it; the messages that it gives up. ``seen``: ledgers that its process knew of,
    by their managed ledger's creation and id."""
    upto = said.get(ml.name)
    if upto is not None:
        _step_over(ml, upto, seen)
        for ledger in ml.listing:
            if ledger.id <= upto:
                ledger.cold = True
        above = [one for one, size in sorted(ml.listed.items()) if size and one > upto]
        ml.expected = above[0] if above else None
        ml.watermark = upto
    if f"{ml.name}#lookback-ledger" in said:
        at = said[f"{ml.name}#lookback-ledger"], said[f"{ml.name}#lookback-entry"]
        ml.lookback = at if at[0] >= 0 else None
    return _give_up(ml)


def _step_over(ml: ManagedLedger, upto: int, seen: Collection[tuple[str, int]]) -> None:
    """A gap that the log showed before, or that the process had seen before, is one for ever."""
    lost = [one.id for one in ml.ledgers if one.lost]
    for one in lost:
        shown = ml.expected is not None and ml.expected in lost and ml.expected <= one
        if (ml.watermark or -1) < one < upto and (shown or (ml.created, one) in seen):
            ml.stepped_over = one


def _give_up(ml: ManagedLedger) -> set[bytes]:
    """What begins before the position that is waited for, and is incomplete, was given up."""
    if ml.watermark is None or ml.restored:
        return set()
    waited = ml.lookback
    found = set()
    for uuid, (first, last) in incomplete_upto(ml, ml.watermark).items():
        if uuid not in ml.broken and (waited is None or first < waited):
            ml.given_up[last] = ml.watermark
            found.add(uuid)
    return found
