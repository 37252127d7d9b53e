"""All topics of the contract against the Java client: see `tests.contract.kinds`."""

from __future__ import annotations

from tests.contract.kinds import SOME, Case, clients, edges, keyvalue, protobuf, records, several

__all__ = ["CORPUS", "SOME", "Case"]

CORPUS: list[Case] = [
    *records.CASES,
    *clients.CASES,
    *keyvalue.CASES,
    *protobuf.CASES,
    *several.CASES,
    *edges.CASES,
]
