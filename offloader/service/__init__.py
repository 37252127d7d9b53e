"""The offloader as a long-running process: the daemon, and what is known of its work.

    console       log lines on standard error, and on a terminal a progress bar
    daemon        the process around the scheduler and the workers
    iceberg_lags  how far Iceberg tables are behind, asked side by side for ``status``
    iceberg_progress  how far one topic's Iceberg table is behind
    last_errors   each topic's last error, in a file on this machine, for ``status``
    log_follower  what other processes commit to the tables, seen in their logs
    metrics       counters and histograms for Prometheus
    monitor       recent commits, errors and rates, in memory, for ``web``
    signals       Ctrl-C and SIGTERM: the first drains, the second ends at once
    status        how far each topic is: its table's log beside Pulsar's ledger lists
    topic_worker  work on tables beside the turns, topic by topic: maintenance, Iceberg
    unbreakable   a text stream whose writers neither fail nor wait

Decides nothing about ledgers or files: ``schedule``, ``turn``, ``maintenance`` and ``iceberg`` do.

Imports ``schedule``, ``turn``, ``convert``, ``maintenance``, ``iceberg``, ``commit``,
``subscription``, ``backlog``, ``model``, ``config`` and ``reader``; ``web`` and ``cli``
import it.
"""

from offloader.service.iceberg_lags import read_lags
from offloader.service.last_errors import LastError, LastErrors
from offloader.service.status import PartitionStatus, TopicStatus, topic_status

__all__ = ["LastError", "LastErrors", "PartitionStatus", "TopicStatus", "read_lags", "topic_status"]
