"""What offloading costs where nobody measures rows alone: commits, jobs, a day of many topics.

commit_cost  CPU of a commit, a ledger, a job and a row, each by itself
day          these costs added up to a day of a large installation (pure)
drain        a backlog of many topics, drained by the offloader beside the bookies
"""

from __future__ import annotations

__all__: list[str] = []
