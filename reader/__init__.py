"""What a segment is and how to read one, without Spark.

    model         values: topic, partition, position, segment, ledger metadata, columns
    errors        the error tree
    printable     text for a terminal: controls are shown, not done
    config        the reader's settings
    clients       all that is expensive to open: once a process, for all who read
    rotation      files that change while processes run: what is made of them is made anew
    tls           TLS contexts, one for the same section and files
    private_keys  keys that open encrypted entries, from files or a function of the operator's
    key_provider  the function: for which names it is called, and how much it may cost
    private_directory  where caches and state are, which nobody else may write
    closing       what a ``with`` closes
    prefetch      iterators that work ahead of their consumer
    background    work in threads that end with the process
    kernels       compiled loops: unaligned loads, buffers, checksums
    wire          the wire format that several protocols share
    pulsar        the admin REST, and who we are to Pulsar
    bookkeeper    entries straight from the bookies
    tiered        ledgers that Pulsar's own tiered storage has offloaded, from its objects
    decode        entries to messages
    payload       payloads to columns
    encode        columns to payloads
    storage       where the tables are, one file a kind
    table         a topic's Delta table as readers see it
    plan          from a topic to what is read, and why
    sources       the rows of what is planned, from each tier
    stream        a topic as a stream: positions, and what lies between two of them
    scan          a topic's rows as Arrow: what programs use
    sink          rows written to topics, each once

Nothing here imports pyspark, ``spark_ext`` or ``offloader``. Importing this package is cheap: what
``open_topic`` needs is loaded when it is first asked for.
"""

from typing import TYPE_CHECKING, Any

import reader.kernels.begun  # noqa: F401 - notes the time before anything else is imported

if TYPE_CHECKING:
    from reader.scan import TopicReader, open_topic

__all__ = ["TopicReader", "open_topic"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from reader import scan

    return getattr(scan, name)
