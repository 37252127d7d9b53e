"""A commit, tried until the log has it: rules 2 and 3 of ``delta_committer.py``."""

from collections.abc import Callable

from deltalake.exceptions import DeltaError

from offloader.model import COMMIT_RETRIES, CommitRetries
from reader.errors import UnavailableError, plain_text
from reader.model import Topic
from reader.table import TopicTable

_DELTA_ERRORS = (DeltaError, OSError, ValueError, RuntimeError)
"""The errors of delta-rs: its own classes, and Python's for storage and arguments. For an invalid
schema delta-rs raises ``Exception`` itself."""


def commit_until_landed(
    topic: Topic,
    table: TopicTable | None,
    *,
    attempt: Callable[[TopicTable | None], None],
    landed: Callable[[TopicTable, int], TopicTable | None],
    newest: Callable[[], TopicTable | None],
    sleep: Callable[[float], None],
    retries: CommitRetries = COMMIT_RETRIES,
) -> TopicTable:
    """``attempt`` on ``table``, and then on newer handles, until ``landed`` finds it in the log.

    ``table``: None where there is none yet. ``attempt`` checks the handle anew each time, and what
    it raises of our own errors goes to the caller. ``newest`` reads the log afresh; ``landed`` gets
    what it gives, and the version that the attempt was made on (-1: none). Raises UnavailableError.
    """
    moved = unmoved = 0
    while True:
        seen = table.version if table else -1
        failure: Exception | None = None
        try:
            attempt(table)
        except Exception as error:
            if not isinstance(error, _DELTA_ERRORS) and type(error) is not Exception:
                raise
            failure = error
        table = newest()
        if table is not None and (found := landed(table, seen)):
            return found
        if (table.version if table else -1) != seen:
            moved, unmoved = moved + 1, 0
        else:
            unmoved += 1
            sleep(retries.pause_after(unmoved))
        if moved > retries.moved or unmoved >= retries.unmoved:
            raise UnavailableError(
                f"cannot commit to the table of {topic}: "
                f"{plain_text(failure or 'the log did not move')}",
                hint="check storage.uri, storage.options and the permission to write",
            ) from failure
