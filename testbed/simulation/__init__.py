"""A Pulsar in memory: no process, no socket, no clock but its own; and the list of what it has.

    clock            the time of a history, and the clocks of hosts
    outages          servers that are away for a while
    effects          where a process may die, an effect may fail, or another process come in between
    evolving_schema  a schema that gets more columns or is registered anew, and messages of it
    entry_bytes      entries as a broker stores them, written by hand
    ledgers          a managed ledger, with the truth about each entry
    chunks           what each chunk does, in the order of the log
    commits          what a commit says: what is in the table, given up, stepped over
    cluster_state    topics, ledgers, cursors and transactions; what deletes messages
    producers        producers' names, deduplication, and when an entry is stored
    admin_rest       the admin REST: a request in, status and JSON out
    expectation      which rows a query has to give, by what was published

It knows nothing of the product, so that it cannot agree with a bug in it: ``tests.simulation``
puts the product on top of it. Imports nothing but the standard library.
"""

from testbed.simulation.admin_rest import AdminRest
from testbed.simulation.chunks import follow, incomplete_messages, needed_chunks
from testbed.simulation.clock import Clock, HostClock
from testbed.simulation.cluster_state import HOLD, ClusterState, SimulatedTopic
from testbed.simulation.commits import note_commit, of_old_copy, said_of
from testbed.simulation.effects import CrashError, Effects, FailureError, Trouble
from testbed.simulation.entry_bytes import message_entry, raw_message
from testbed.simulation.evolving_schema import (
    SchemaRegistry,
    avro_chunks,
    avro_message,
    life_of,
    message_of,
    mirrored,
)
from testbed.simulation.expectation import Expectation, Row, RowKind, expected_rows, published_rows
from testbed.simulation.ledgers import Entry, Ledger, ManagedLedger, Position
from testbed.simulation.outages import SERVERS, Outages, bookie_of
from testbed.simulation.producers import Frame, Incident, IncidentKind, Producers, Reply, Session

__all__ = [
    "HOLD",
    "SERVERS",
    "AdminRest",
    "Clock",
    "ClusterState",
    "CrashError",
    "Effects",
    "Entry",
    "Expectation",
    "FailureError",
    "Frame",
    "HostClock",
    "Incident",
    "IncidentKind",
    "Ledger",
    "ManagedLedger",
    "Outages",
    "Position",
    "Producers",
    "Reply",
    "Row",
    "RowKind",
    "SchemaRegistry",
    "Session",
    "SimulatedTopic",
    "Trouble",
    "avro_chunks",
    "avro_message",
    "bookie_of",
    "expected_rows",
    "follow",
    "incomplete_messages",
    "life_of",
    "message_entry",
    "message_of",
    "mirrored",
    "needed_chunks",
    "note_commit",
    "of_old_copy",
    "published_rows",
    "raw_message",
    "said_of",
]
