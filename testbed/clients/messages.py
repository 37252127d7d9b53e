"""`ClientMessage`: one payload as a client wrote it, and the value as that client reads it."""

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

UNCERTAIN = "?"
"""The value of a message of which the client's own form does not tell what it is."""


@dataclass(frozen=True, slots=True)
class ClientMessage:
    payload: bytes
    value: Any
    """As the client reads the payload again. Floats and decimals are text, bytes are base64, times
    are integers (nanoseconds since 1970), maps have text as keys."""


@dataclass(frozen=True, slots=True)
class ClientTopic:
    """Messages of one schema; `name` is the topic they were sent to, or empty."""

    type: str
    definition: str
    messages: Sequence[ClientMessage]
    name: str = ""


def topics_of(lines: Iterable[str]) -> list[ClientTopic]:
    """Parse a client's output: a JSON line a message, messages of a schema side by side."""
    made: dict[int, tuple[dict[str, Any], list[ClientMessage]]] = {}
    for line in filter(None, lines):
        message = json.loads(line)
        payload = base64.b64decode(message["payload"])
        _, messages = made.setdefault(message["schema"], (message, []))
        messages.append(ClientMessage(payload, message["value"]))
    return [
        ClientTopic(first["type"], first["definition"], messages, first.get("topic", ""))
        for first, messages in made.values()
    ]
