"""Raw bytes, kind and reason of each rescued row; the rules are in the package's docstring."""

from typing import NamedTuple

import numpy as np

from reader.decode import tables
from reader.decode.arrays import Rows
from reader.model import EntryBlock
from reader.model.row_kinds import RowKind


class RescuedRow(NamedTuple):
    """A row whose columns lack something of its entry. ``raw``: the bytes for ``__rescued``."""

    raw: bytes
    reason: str
    kind: RowKind


def rescued_rows(rows: Rows, block: EntryBlock) -> dict[int, RescuedRow]:
    """Return the rescued rows by their number."""
    reasons = rows.entry(tables.E_REASON)
    soft = rows.row(tables.R_SOFT)
    found: dict[int, RescuedRow] = {}
    for row in np.flatnonzero((reasons != 0) | (soft != 0)).tolist():
        i = int(rows.row(tables.R_ENTRY)[row])
        reason = int(reasons[row])
        texts = [tables.REASONS[reason]] if reason else []
        if reason == tables.DAMAGED:
            texts = [f"{tables.REASONS[reason]}: {block.damaged[i]}"]
        elif reason == tables.ENCRYPTED and i in block.sealed:
            texts = [f"{tables.REASONS[reason]}: {block.sealed[i]}"]
        texts += [text for bit, text in tables.SOFT_REASONS.items() if int(soft[row]) & bit]
        kind = tables.KINDS.get(reason, RowKind.UNDECODABLE) if reason else RowKind.MESSAGE
        found[row] = RescuedRow(_raw(rows, block, row, i), "; ".join(texts), kind)
    return found


def _raw(rows: Rows, block: EntryBlock, row: int, i: int) -> bytes:
    start = max(int(block.offsets[i]), 0)
    end = max(start + int(block.lengths[i]), start)
    if rows.entries[tables.E_REASON, i] == tables.ENCRYPTED:
        return rows.arena[int(rows.entries[tables.E_PAYLOAD, i]) : end].tobytes()
    if rows.row(tables.R_BATCH)[row] < 0:
        return rows.arena[start:end].tobytes()
    header = int(rows.entries[tables.E_METADATA, i] + rows.entries[tables.E_METADATA_LENGTH, i])
    metadata, length = (
        int(rows.row(tables.R_METADATA)[row]),
        int(rows.row(tables.R_METADATA_LENGTH)[row]),
    )
    source, at = (rows.arena, metadata) if metadata >= 0 else (rows.inflated, ~metadata)
    frame = source[at - 4 : at + length + int(rows.row(tables.R_SIZE)[row])]
    return rows.arena[start:header].tobytes() + frame.tobytes()
