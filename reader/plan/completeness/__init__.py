"""Whether a query's rows would be all there are: a clear error otherwise, never fewer rows.

    held_tables     whether the table is the one for which the hold was moved
    refusals        topics of which a broker cannot show everything, or not yet
    compacted_part  what a compacted view needs of Pulsar's compacted ledgers, and has of them

A topic that was migrated to a scalable topic of Pulsar 5 has all that was published under its name.
What follows has other names, so a query gives a warning and all rows, not an error.
"""

from reader.plan.completeness.compacted_part import CompactedPart, compacted_parts, compaction_start
from reader.plan.completeness.held_tables import HoldReader, given_up, held_table
from reader.plan.completeness.refusals import MigrationReader, migrated_note, refuse_recovering

__all__ = [
    "CompactedPart",
    "HoldReader",
    "MigrationReader",
    "compacted_parts",
    "compaction_start",
    "given_up",
    "held_table",
    "migrated_note",
    "refuse_recovering",
]
