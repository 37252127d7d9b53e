"""Raw bytes, kind and reason of each rescued row; the rules are in the package's docstring."""

from typing import NamedTuple

import numpy as np

from reader.decode.arrays import Rows
from reader.decode.tables import (
    DAMAGED,
    E_METADATA,
    E_METADATA_LENGTH,
    E_PAYLOAD,
    E_REASON,
    ENCRYPTED,
    KINDS,
    R_BATCH,
    R_ENTRY,
    R_METADATA,
    R_METADATA_LENGTH,
    R_SIZE,
    R_SOFT,
    REASONS,
    SOFT_REASONS,
)
from reader.model import EntryBlock
from reader.model.row_kinds import RowKind


class RescuedRow(NamedTuple):
    """A row whose columns lack something of its entry. ``raw``: the bytes for ``__rescued``."""

    raw: bytes
    reason: str
    kind: RowKind


def rescued_rows(rows: Rows, block: EntryBlock) -> dict[int, RescuedRow]:
    """Return the rescued rows by their number."""
    reasons = rows.entry(E_REASON)
    soft = rows.row(R_SOFT)
    found: dict[int, RescuedRow] = {}
    for row in np.flatnonzero((reasons != 0) | (soft != 0)).tolist():
        i = int(rows.row(R_ENTRY)[row])
        reason = int(reasons[row])
        texts = [REASONS[reason]] if reason else []
        if reason == DAMAGED:
            texts = [f"{REASONS[reason]}: {block.damaged[i]}"]
        elif reason == ENCRYPTED and i in block.sealed:
            texts = [f"{REASONS[reason]}: {block.sealed[i]}"]
        texts += [text for bit, text in SOFT_REASONS.items() if int(soft[row]) & bit]
        kind = KINDS.get(reason, RowKind.UNDECODABLE) if reason else RowKind.MESSAGE
        found[row] = RescuedRow(_raw(rows, block, row, i), "; ".join(texts), kind)
    return found


def _raw(rows: Rows, block: EntryBlock, row: int, i: int) -> bytes:
    start = max(int(block.offsets[i]), 0)
    end = max(start + int(block.lengths[i]), start)
    if rows.entries[E_REASON, i] == ENCRYPTED:
        return rows.arena[int(rows.entries[E_PAYLOAD, i]) : end].tobytes()
    if rows.row(R_BATCH)[row] < 0:
        return rows.arena[start:end].tobytes()
    header = int(rows.entries[E_METADATA, i] + rows.entries[E_METADATA_LENGTH, i])
    metadata, length = int(rows.row(R_METADATA)[row]), int(rows.row(R_METADATA_LENGTH)[row])
    source, at = (rows.arena, metadata) if metadata >= 0 else (rows.inflated, ~metadata)
    frame = source[at - 4 : at + length + int(rows.row(R_SIZE)[row])]
    return rows.arena[start:header].tobytes() + frame.tobytes()
