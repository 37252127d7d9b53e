"""Ledgers that Pulsar's own tiered storage has offloaded, read from its objects.

The codecs take bytes and give values, or one clear error; ``tiered_ledgers`` alone does I/O. No
checksum is stored beside the entries, so everything else is checked that the formats say twice: a
damaged object is an error, never fewer entries.

    walk             the interface of a walk over an object's entries, and what a walk gives
    jcloud_index     the index of an object of the jcloud drivers (S3, GCS, Azure)
    jcloud_blocks    the entries of its data object
    ledger_end       a ledger's last entry and length, as an offloader stores them
    sequence_file    Hadoop's SequenceFile: headers, compression, whole small files
    sequence_walk    the entries of one, whichever way it is compressed
    map_file         a ledger of the filesystem driver: a SequenceFile and its index
    object_names     what the drivers call their objects
    places           where entries begin, as reads have learned it
    object_reads     byte ranges of objects; their errors
    tiered_ledgers   ledgers of the places that settings name: opened once, read in windows
    prewarm          compiles the kernels

Imports ``reader.config``, ``reader.errors``, ``reader.kernels``, ``reader.model``,
``reader.prefetch``, ``reader.storage`` and ``reader.wire``.
"""

from reader.tiered.prewarm import prewarm
from reader.tiered.tiered_ledgers import TieredLedgers, format_of

__all__ = ["TieredLedgers", "format_of", "prewarm"]
