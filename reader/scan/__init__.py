"""Rows of a topic to Arrow, without Spark: one snapshot over all tiers.

    topic_reader   open_topic, TopicReader: what a program uses
    row_scan       one plan's rows as batches
    time_range     the least and the greatest publish time that is wanted
    behind         the rows of a partition behind a position, whatever lies before it
    bounds         a part of a scan: what lies between two positions of each partition
    ends           a topic's first or last messages
    follow         what comes after a snapshot
    open_scans     scans that are being read: closed with their topic, or at the process's end

Imports ``reader.{clients,model,plan,sources,storage,table}``; nothing of Spark's.
"""

from reader.scan.behind import read_behind
from reader.scan.topic_reader import TopicReader, open_topic

__all__ = ["TopicReader", "open_topic", "read_behind"]
