"""All topics of the contract against the Java client: see `tests.contract.kinds`."""

from __future__ import annotations

from tests.contract.kinds import SOME, Case, keyvalue, protobuf, records, several

__all__ = ["CORPUS", "SOME", "Case"]

CORPUS: list[Case] = [*records.CASES, *keyvalue.CASES, *protobuf.CASES, *several.CASES]
