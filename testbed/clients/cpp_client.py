"""The C++ client as a writer of KeyValue messages.

Under every other schema an application of C++ encodes its values itself, and the client sends the
bytes: what pulsar-client of Python does, too, which is built upon the same library. So KeyValue is
all that the C++ client writes in a form of its own. The library is the one inside pulsar-client's
wheel; `cpp/pulsar.h` declares what is used of it.
"""

import random
import struct
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from testbed.programs import ToolMissingError, cpp_build

_SOURCES = Path(__file__).with_name("cpp")
_DEFINITION = (
    '{"type":"record","name":"Event","fields":'
    '[{"name":"id","type":"long"},{"name":"name","type":["null","string"]}]}'
)


@dataclass(frozen=True, slots=True)
class KeyValueTopic:
    """A topic of KeyValue messages.

    sent: keys and values as the application has them; a record is a dict.
    read: their bytes as the C++ client reads them again, with the bytes that were sent.
    """

    name: str
    encoding: str
    sent: Sequence[tuple[Any, Any]]
    read: Sequence[tuple[tuple[bytes, bytes], tuple[bytes, bytes]]]


@dataclass(frozen=True, slots=True)
class _Type:
    number: int
    draw: Callable[[random.Random], Any]
    encode: Callable[[Any], bytes]

    def described(self) -> tuple[str, str]:
        """Return the type and the definition as arguments of the program."""
        return str(self.number), _DEFINITION if self.number == 2 else ""


def _number(number: int, code: str) -> _Type:
    bits = 8 * struct.calcsize(f">{code}")

    def draw(source: random.Random) -> int:
        return source.choice([0, -1, 127, source.getrandbits(bits) - (1 << bits - 1)])

    return _Type(number, draw, lambda value: struct.pack(f">{code}", value))


def _text(source: random.Random) -> str:
    return "".join(
        source.choices(["a", "é", "\x7f", "\u20ac", '"', "\\", "\n"], k=source.randint(1, 9))
    )


def _float(code: str) -> Callable[[random.Random], float]:
    return lambda source: struct.unpack(f">{code}", struct.pack(f">{code}", source.gauss(0, 1e9)))[
        0
    ]


def _event(source: random.Random) -> dict[str, Any]:
    return {"id": source.getrandbits(40), "name": source.choice([None, "a", "b"])}


def _json(event: dict[str, Any]) -> bytes:
    name = "null" if event["name"] is None else f'"{event["name"]}"'
    return f'{{"id":{event["id"]},"name":{name}}}'.encode()


# By the numbers that Pulsar's SchemaType has. Keys and values are not empty: see types.md.
_TYPES = [
    _Type(1, _text, str.encode),
    _Type(2, _event, _json),
    _number(6, "b"),
    _number(7, "h"),
    _number(8, "i"),
    _number(9, "q"),
    _Type(10, _float("f"), lambda value: struct.pack(">f", value)),
    _Type(11, _float("d"), lambda value: struct.pack(">d", value)),
    _Type(-1, lambda source: source.randbytes(source.randint(1, 9)), bytes),
]


def cpp_topics(seed: int, messages: int, service_url: str, prefix: str) -> list[KeyValueTopic]:
    """Send `messages` random messages to a topic for each encoding, one of the two in batches.

    The names of the topics begin with `prefix`. Raises ToolMissingError if no C++ compiler is
    installed, or if pulsar-client has no shared library.
    """
    program = cpp_build(_SOURCES, _library())
    source = random.Random(seed)
    command = [str(program), service_url]
    return [
        _send(source, messages, command, f"{prefix}-{number}", encoding, str((seed + number) % 2))
        for number, encoding in enumerate(("INLINE", "SEPARATED"))
    ]


def _send(
    source: random.Random,
    messages: int,
    command: list[str],
    topic: str,
    encoding: str,
    batched: str,
) -> KeyValueTopic:
    key, value = source.choices(_TYPES, k=2)
    sent = [(key.draw(source), value.draw(source)) for _ in range(messages)]
    encoded = [(key.encode(first), value.encode(second)) for first, second in sent]
    with tempfile.NamedTemporaryFile("r") as out:
        subprocess.run(
            [*command, topic, encoding, *key.described(), *value.described(), batched, out.name],
            input="".join(f"{first.hex()},{second.hex()}\n" for first, second in encoded),
            stdout=subprocess.DEVNULL,
            text=True,
            check=True,
            timeout=120,
        )
        lines = [line.partition(",") for line in out.read().splitlines()]
    read = [(bytes.fromhex(first), bytes.fromhex(second)) for first, _, second in lines]
    return KeyValueTopic(topic, encoding, sent, list(zip(read, encoded, strict=True)))


def _library() -> Path:
    files = distribution("pulsar-client").files or []
    for file in files:
        if file.name.startswith("libpulsar") and ".so" in file.name:
            return Path(str(file.locate())).resolve()
    raise ToolMissingError(
        "pulsar-client has no shared library that a C++ program can be linked with"
    )
