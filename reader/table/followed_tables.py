"""The newest version of tables that are looked at again and again, by the commits since.

To open a table takes delta-rs a hundred times as long as to read one commit. What is asked of each
version, and changes with each, are the log's numbers (``txn``), and a commit has all those that it
sets. So the log is read afresh each time, but only from the version that is known:

1. The commit that made that version still has the id that it had (a random one), and it was read
   before the version was opened: so it is the same log, and neither another table nor an old copy
   that has grown again.
2. The commits after it, one by one, up to the first that is not there. One that says anew what the
   table is (columns, properties, protocol), or a commit that is not ours: opened anew.

A version that was opened without having been read before is opened anew, too, the next time.

Who queries keeps the files of some tables as well (``MOST_FILES``); who offloads thousands of
topics keeps none.
"""

from collections import OrderedDict
from threading import Lock

from reader.model import Topic
from reader.storage import Storage
from reader.table.log import LoggedCommit, read_commit
from reader.table.topic_table import TopicTable

MOST_FILES = 1 << 19
"""Of all kept tables together: some 100 MiB."""
_MOST_TABLES = 4096
_MOST_OPEN = 64
"""Of tables with their files: each has what delta-rs keeps of its log."""
_MOST_COMMITS = 16
"""Of more, opening the table is the quicker way."""


class FollowedTables:
    """Thread-safe. ``most_files``: of how many files it keeps the statistics, if of any."""

    def __init__(self, storage: Storage, *, most_files: int = 0) -> None:
        self._storage = storage
        self._most_files = most_files
        self._lock = Lock()
        self._known: OrderedDict[Topic, TopicTable] = OrderedDict()

    def newest(self, topic: Topic) -> TopicTable | None:
        """The newest version, by a log that is read afresh; None where there is no table.

        Raises as ``TopicTable.open`` does, and CorruptError for a commit that is none.
        """
        with self._lock:
            known = self._known.get(topic)
        commits = self._since(known) if known else []
        found = known.followed_by(commits) if known else None
        if found is not None and self._most_files and len(commits) == 1:
            found = known  # with its files
        last = commits[-1] if commits else None
        if found is None:
            found = TopicTable.open(self._storage, topic)
            if last is not None and found is not None and last.version != found.version:
                last = None
        kept = found
        if found is not None and found is not known:
            kept = found.made_by(last, files=self._most_files > 0)
            found = kept if self._most_files else found
        with self._lock:
            self._known.pop(topic, None)
            if kept is not None:
                self._known[topic] = kept
                while len(self._known) > 1 and self._too_many():
                    self._known.popitem(last=False)
        return found

    def _too_many(self) -> bool:
        files = sum(one.files_in_memory for one in self._known.values())
        most = _MOST_OPEN if self._most_files else _MOST_TABLES
        return len(self._known) > most or files > max(self._most_files, 1)

    def _since(self, known: TopicTable) -> list[LoggedCommit]:
        """The commit of the known version, and all after it; none where there are too many."""
        found: list[LoggedCommit] = []
        for version in range(known.version, known.version + _MOST_COMMITS):
            commit = read_commit(self._storage, known.topic, version)
            if commit is None:
                return found if len(found) < 2 or self._is_there(known.topic, found[0]) else []
            found.append(commit)
        return []

    def _is_there(self, topic: Topic, commit: LoggedCommit) -> bool:
        """Whether it still is: those that were read after it are of the same log."""
        again = read_commit(self._storage, topic, commit.version)
        return again is not None and again.id == commit.id
