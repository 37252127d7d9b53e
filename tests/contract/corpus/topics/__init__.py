"""The kinds of the corpus: how each topic is published, and what must come out.

published     kinds that `pulsar-client` writes: schemas, keys, batches, compressions
messages      kinds that the Java client writes: keys, times, partitions, markers
schemas       schemas by the Java client: primitive ones, versions, and all of `kinds`
chunks        chunked messages: interleaved, sent again, incomplete
transactions  committed, aborted and open transactions
encryption    messages that are encrypted with known and with unknown keys
"""
