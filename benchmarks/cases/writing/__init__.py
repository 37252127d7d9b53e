"""Cases of writing to topics.

producers  rows to a topic by our producer, by pulsar-client and by the Java client
inserts    INSERT beside a foreachPartition loop over pulsar-client, and what staging costs
"""

from __future__ import annotations

__all__: list[str] = []
