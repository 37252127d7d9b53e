"""Commands of Pulsar's binary protocol as frames, and frames as commands. No I/O.

A frame is ``u32 size``, ``u32 size of the command``, and the command: a ``BaseCommand``, whose type
is the number of the field that has the command itself. ``reader/wire/pulsar.proto`` defines them.
"""

from google.protobuf.message import DecodeError, Message

from reader.errors import CorruptError
from reader.model import Position
from reader.wire.pulsar_pb2 import BaseCommand, MessageIdData

PROTOCOL_VERSION = 21
"""Pulsar 4's. A broker that knows less answers with its own; from 11 on it sends checksums."""

_NAMES = {one.number: one.name for one in BaseCommand.DESCRIPTOR.fields if one.message_type}
_NUMBERS = {type(getattr(BaseCommand(), name)): number for number, name in _NAMES.items()}


def framed(command: Message, following: int = 0) -> bytes:
    """Return the frame of a command.

    following: bytes of the frame that the caller sends after it: those of an entry.
    """
    number = _NUMBERS[type(command)]
    base = BaseCommand(type=number)
    getattr(base, _NAMES[number]).CopyFrom(command)
    data = base.SerializeToString()
    size = len(data)
    return (size + 4 + following).to_bytes(4, "big") + size.to_bytes(4, "big") + data


def parsed_command(data: bytes) -> Message | None:
    """Return the command of a ``BaseCommand``, or None if its type is not known here.

    Raises CorruptError if the data is not a ``BaseCommand``.
    """
    try:
        base = BaseCommand.FromString(data)
    except DecodeError:
        raise CorruptError("a broker's command is not protobuf, or ends too early") from None
    if not base.type:
        raise CorruptError("a broker's command has no type")
    name = _NAMES.get(base.type)
    command: Message | None = getattr(base, name) if name else None
    return command


def message_id_of(position: Position) -> MessageIdData:
    """Return a position as a ``MessageIdData``."""
    return MessageIdData(ledgerId=position.ledger, entryId=position.entry)


def position_of(message_id: MessageIdData) -> Position:
    """Return the position that a ``MessageIdData`` names."""
    return Position(message_id.ledgerId, message_id.entryId)
