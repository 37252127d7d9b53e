"""Names under which the log keeps numbers of ours: ``txn`` actions of the Delta protocol.

A commit sets ``txn(appId, version)``, and a version of the table has the last of each ``appId``
("Transaction Identifiers" of the protocol). A partition's watermark goes by its full name alone.
"""

from __future__ import annotations

from reader.model import Partition, Topic

__all__ = [
    "added_key",
    "ciphertext_key",
    "closed_keys",
    "compaction_start_key",
    "data_loss_key",
    "earlier_key",
    "expected_key",
    "expired_before_key",
    "expired_from_key",
    "expired_given_up_keys",
    "expired_keys",
    "first_keys",
    "given_up_keys",
    "last_entry_key",
    "lookback_keys",
    "open_key",
]


def added_key(partition: Partition) -> str:
    """The ``txn`` id under which the log keeps ``TopicTable.added``."""
    return f"{partition.full_name}#added"


def ciphertext_key(topic: Topic) -> str:
    """The ``txn`` id that says that the table holds rows of encrypted entries."""
    return f"{topic.full_name}#ciphertext"


def closed_keys(partition: Partition) -> tuple[str, str]:
    """``txn`` ids of ``TopicTable.closed_at``, and of the watermark that it was said with."""
    return f"{partition.full_name}#closed-at", f"{partition.full_name}#closed-ledger"


def compaction_start_key(partition: Partition) -> str:
    """The ``txn`` id under which the log keeps ``TopicTable.compaction_start``."""
    return f"{partition.full_name}#compaction-start"


def data_loss_key(lost_of: Topic | Partition) -> str:
    """The ``txn`` id that says that a commit stepped over messages that were deleted before."""
    return f"{lost_of.full_name}#data-loss"


def earlier_key(partition: Partition) -> str:
    """The ``txn`` id under which the log keeps ``TopicTable.earlier``."""
    return f"{partition.full_name}#earlier"


def expected_key(partition: Partition) -> str:
    """The ``txn`` id under which the log keeps ``TopicTable.expected``."""
    return f"{partition.full_name}#expected"


def expired_keys(partition: Partition) -> tuple[str, str]:
    """``txn`` ids under which the log keeps ledger and entry of ``TopicTable.expired_upto``."""
    return f"{partition.full_name}#expired", f"{partition.full_name}#expired-entry"


def expired_from_key(partition: Partition) -> str:
    """The ``txn`` id under which the log keeps ``TopicTable.expired_from``."""
    return f"{partition.full_name}#expired-from"


def expired_given_up_keys(partition: Partition) -> tuple[str, str]:
    """Return the ``txn`` ids of ledger and entry of ``TopicTable.expired_given_up``."""
    name = partition.full_name
    return f"{name}#expired-given-up-ledger", f"{name}#expired-given-up-entry"


def expired_before_key(expired_of: Topic | Partition) -> str:
    """The ``txn`` id of ``TopicTable.expired_before``, and of the same of one partition."""
    return f"{expired_of.full_name}#expired-before"


def first_keys(partition: Partition) -> tuple[str, str]:
    """``txn`` ids under which the log keeps ``TopicTable.first`` and ``TopicTable.missing``."""
    return f"{partition.full_name}#first", f"{partition.full_name}#missing"


def given_up_keys(partition: Partition) -> tuple[str, str]:
    """``txn`` ids under which the log keeps ledger and entry of ``TopicTable.given_up``."""
    return f"{partition.full_name}#given-up-ledger", f"{partition.full_name}#given-up-entry"


def last_entry_key(partition: Partition) -> str:
    """The ``txn`` id under which the log keeps the last entry of the watermark's ledger."""
    return f"{partition.full_name}#last-entry"


def lookback_keys(partition: Partition) -> tuple[str, str]:
    """``txn`` ids under which the log keeps ledger and entry of ``TopicTable.lookback``."""
    return f"{partition.full_name}#lookback-ledger", f"{partition.full_name}#lookback-entry"


def open_key(partition: Partition) -> str:
    """The ``txn`` id under which the log keeps ``TopicTable.open_ledger``."""
    return f"{partition.full_name}#open"
