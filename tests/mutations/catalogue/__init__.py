"""The mutations, by what a user would lose.

commits      commits to the table: two offloaders, retries, age of files, statistics
planning     which segments and files a query reads, and what it counts without reading
decoding     entries: batches, chunks, markers, transactions, checksums, encryption
offloading   holds, and which ledgers are due when
maintenance  expiry, compaction, vacuum, and the Iceberg tables that follow
sources      where a split is read when a source fails
sinks        writes to topics: sequence ids, manifests, receipts
streams      positions of streams, and what they say of losses
payloads     schemas, values, names of columns
access       who may see what: paths, certificates, tokens, the page
reading      settings, status, scans, compacted views
kernels      compiled code that is kept from one process to the next
"""

from tests.mutations.catalogue import (
    access,
    commits,
    decoding,
    kernels,
    maintenance,
    offloading,
    payloads,
    planning,
    reading,
    sinks,
    sources,
    streams,
)

__all__ = ["CATALOGUE"]

_ROOMS = (
    commits,
    planning,
    decoding,
    offloading,
    maintenance,
    sources,
    sinks,
    streams,
    payloads,
    access,
    reading,
    kernels,
)
CATALOGUE = tuple(one for room in _ROOMS for one in room.MUTATIONS)
"""All mutations, in the order in which they are tried."""
