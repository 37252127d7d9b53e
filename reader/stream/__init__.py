"""A topic as a stream: where it is, how far it goes next, and what lies between.

    offsets         StreamOffset: of each partition the last entry that was read, as JSON
    stream_options  StreamOptions: what was asked for
    topic_stream    TopicStream: one query's positions and batches
    known_topic     what is known of one topic between two batches
    losses          what a stream has not read and never will
    tails           where partitions end now, asked for all streams together; topics of patterns
    outage          Outage: servers that do not answer for a while
    limits          how much a batch takes: cut at one publish time for all partitions
    topic_batch     TopicBatch: what lies between two positions
    entry_sizes     what entries hold, without their payloads; where a time begins
    shown_place     a stream's place, as a subscription that Pulsar's own tools show
    lag             how far a stream is behind: messages, bytes, seconds

Nothing here knows Spark.
"""

from reader.stream.offsets import StreamOffset
from reader.stream.stream_options import StreamOptions
from reader.stream.tails import Tails
from reader.stream.topic_batch import TopicBatch
from reader.stream.topic_stream import TopicStream

__all__ = ["StreamOffset", "StreamOptions", "Tails", "TopicBatch", "TopicStream"]
