"""Names of data files: ``p<partition>-<first ledger>-<uuid>.zstd.parquet``.

Unique for each attempt. Vacuum deletes nothing of another name.
"""

import re
import uuid

_OURS = re.compile(r"p\d+-\d+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.zstd\.parquet")


def data_file(partition: int, ledger: int) -> str:
    """A name that no file has. ``partition``: index; -1, of a topic that has none, counts as 0."""
    return f"p{max(0, partition)}-{ledger}-{uuid.uuid4()}.zstd.parquet"


def is_data_file(name: str) -> bool:
    """Whether ``data_file`` makes such names."""
    return _OURS.fullmatch(name) is not None
