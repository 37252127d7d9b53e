"""Pulsar's compaction of one partition: the latest message of each key, in a ledger of its own."""

from testbed.simulation import ClusterState, Entry, Ledger, ManagedLedger, Position, raw_message

CURSOR = "__compaction"


def compact(state: ClusterState, ml: ManagedLedger) -> None:
    """Compact all that is readable, and the last compacted ledger, into another in its place."""
    readable = _readable(ml)
    if not readable:
        return
    there = {one.id for one in ml.listing}
    found = ml.compacted_from | {at: entry for at, entry in readable.items() if at[0] in there}
    keys = {entry.key: at for at, entry in sorted(found.items())}
    kept = {
        at: entry
        for at, entry in sorted(found.items())
        if keys[entry.key] == at and entry.values != (None,)
    }
    number, state.next_ledger = state.next_ledger, state.next_ledger + 1
    now = state.brokers_clock.now_ms
    written = [Entry(raw_message(at, entry.data), (), now, now) for at, entry in kept.items()]
    ml.compacted, ml.compacted_from = Ledger(number, written, closed_ms=now), kept
    ledger, last = max(readable)
    ml.cursors[CURSOR] = ledger, last + 1
    ml.properties[CURSOR] = {"CompactedTopicLedger": str(number)}


def latest(ml: ManagedLedger) -> dict[bytes, bytes]:
    """Return the value of each key's latest message of all that were ever readable."""
    values = {entry.key: entry.values[0] for _, entry in sorted(_readable(ml).items())}
    return {key: value for key, value in values.items() if key is not None and value is not None}


def _readable(ml: ManagedLedger) -> dict[Position, Entry]:
    end = ml.max_read
    return {
        (ledger.id, number): entry
        for ledger, number, entry in ml.entries()
        if (ledger.id, number) <= end and entry.key is not None
    }
