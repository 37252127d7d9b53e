"""Ledger metadata out of the text that Pulsar's admin REST prints."""

import re

from reader.errors import CorruptError
from reader.model import LedgerMetadata

_PAIR = re.compile(r"(\w+)=([^,{}\[\]]+)(?=[,}])")
_ENSEMBLES = re.compile(r"ensembles=\{(.*?)\}")
_ENSEMBLE = re.compile(r"(\d+)=\[([^\]]*)\]")


def parse_ledger_metadata(ledger_id: int, text: str) -> LedgerMetadata:
    """Read ``LedgerMetadata{formatVersion=3, ensembleSize=3, …, ensembles={0=[a, b, c]}, …}``.

    That is what ``internalStats?metadata=true`` gives per ledger (BookKeeper's
    ``LedgerMetadataImpl.toString``). Raises CorruptError for anything else.
    """
    head, _, _ = text.partition(", customMetadata=")
    fields = dict(_PAIR.findall(head + "}"))
    found = _ENSEMBLES.search(head)
    try:
        ensembles = tuple(
            (int(first), tuple(bookie.strip() for bookie in bookies.split(",")))
            for first, bookies in _ENSEMBLE.findall(found[1] if found else "")
        )
        made = LedgerMetadata(
            ledger_id=ledger_id,
            state=fields["state"],
            ensemble_size=int(fields["ensembleSize"]),
            write_quorum=int(fields["writeQuorumSize"]),
            ack_quorum=int(fields["ackQuorumSize"]),
            last_entry=int(fields.get("lastEntryId", -1)),
            digest_type=fields.get("digestType", "UNKNOWN"),
            ensembles=tuple(sorted(ensembles)),
            length=int(fields.get("length", -1)),
        )
    except (KeyError, ValueError) as error:
        raise CorruptError(
            f"cannot read the metadata of ledger {ledger_id}: {text[:200]}"
        ) from error
    if not made.ensembles or any(len(b) != made.ensemble_size for _, b in made.ensembles):
        raise CorruptError(f"ledger {ledger_id} has no whole ensemble: {text[:200]}")
    return made
