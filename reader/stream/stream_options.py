"""The options of a stream, by the names that Kafka's and Delta's sources taught."""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Self

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BeforeValidator, Field, PositiveInt, ValidationError, model_validator

from reader.config import Duration, Section
from reader.errors import ConfigurationError
from reader.model import Partition, Position, Topic
from reader.stream.offsets import StreamOffset

_SIZE = re.compile(r"(\d+)([kmgt]?)b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_ENDS = ("earliest", "latest")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a stream begins or ends, as it was asked for: one of these.

    ``end``: "earliest" or "latest". ``time``: µs since the epoch. ``positions``: by topic and
    partition index, an entry or "earliest" or "latest"; no topic's name for the one topic that
    there is. ``offset``: of a stream's progress.
    """

    end: str | None = None
    time: int | None = None
    positions: Mapping[tuple[Topic | None, int], Position | str] | None = None
    offset: StreamOffset | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError for a text that is none."""
        word = text.strip()
        if word.lower() in _ENDS:
            return cls(end=word.lower())
        if word.startswith("{"):
            return cls._of_json(word)
        try:
            time = datetime.fromisoformat(word)
        except ValueError:
            raise ValueError(
                f"{text[:100]!r} is none of: earliest, latest, a time in ISO 8601, positions as "
                '{"0": "7:20"}'
            ) from None
        aware = time if time.tzinfo else time.replace(tzinfo=UTC)
        micros = (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        return cls(time=micros)

    @classmethod
    def _of_json(cls, text: str) -> Self:
        try:
            value = json.loads(text)
        except ValueError:
            raise ValueError(f"positions are no JSON: {text[:100]}") from None
        if "format" in value:
            return cls(offset=StreamOffset.from_json(text))
        found: dict[tuple[Topic | None, int], Position | str] = {}
        for name, one in value.items():
            if isinstance(one, dict):
                topic = Topic.parse(name)
                found |= {(topic, int(index)): _position(at) for index, at in one.items()}
            else:
                found[None, int(name)] = _position(one)
        return cls(positions=found)


def _position(text: object) -> Position | str:
    if not isinstance(text, str):
        raise ValueError(f'a position is a text such as "7:20", not {text!r}')
    if text.lower() in _ENDS:
        return text.lower()
    if re.fullmatch(r"[0-9]{1,18}:[0-9]{1,18}", text) is None:
        raise ValueError(f'a position is "ledger:entry", such as "7:20", not {text[:100]!r}')
    return Position.parse(text)


def _place(value: object) -> object:
    return Place.parse(value) if isinstance(value, str) else value


def _size(value: object) -> object:
    if isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        return int(match[1]) * _UNITS[match[2].lower()]
    return value


def _topics(value: object) -> object:
    if isinstance(value, str):
        return tuple(Topic.parse(name) for name in value.split(",") if name.strip())
    return value


_Place = Annotated[Place, BeforeValidator(_place)]


_MATCHING_SECONDS = 5.0
_NAMES_AT_ONCE = 32


def matching(
    expression: str, names: Sequence[str], clock: Callable[[], float] = time.monotonic
) -> list[str]:
    """Return the names that a regular expression of RE2 matches as a whole.

    RE2 takes time in proportion to a name, and other threads run meanwhile. Python's own may take
    days for forty letters, in which every session's planner stands still. Raises ValueError for
    what is no such expression, and ConfigurationError if it takes five seconds for all names.
    """
    found: list[str] = []
    ends = clock() + _MATCHING_SECONDS
    try:
        pc.match_substring_regex(pa.array([""]), expression)  # by itself: "a)|(b" is none
        for first in range(0, len(names), _NAMES_AT_ONCE):
            if clock() > ends:
                raise ConfigurationError(
                    f"topicsPattern {expression[:200]!r} takes too long: only {first} of "
                    f"{len(names)} names were matched within {_MATCHING_SECONDS:g} s",
                    hint="Use a simpler expression, without large repetitions such as {400}.",
                )
            some = pa.array(names[first : first + _NAMES_AT_ONCE], pa.string())
            whole = pc.match_substring_regex(some, rf"\A(?:{expression})\z")
            found += map(str, some.filter(whole).to_pylist())
    except pa.ArrowInvalid as error:
        raise ValueError(f"topicsPattern is no regular expression of RE2: {error}") from None
    return found


class StreamOptions(Section):
    """What was asked for. ``topics_pattern``: (tenant, namespace, regular expression of names).

    Sizes are bytes; a batch has about ``max_messages`` and ``max_bytes`` at most (``limits``), and
    is not begun before there are ``min_messages``, or ``max_delay`` after the last one.
    ``subscription``: one that shows where the stream is.
    """

    topics: Annotated[tuple[Topic, ...], BeforeValidator(_topics)] = ()
    topics_pattern: str | None = None
    starting: _Place = Place(end="earliest")
    ending: _Place | None = None
    max_messages: PositiveInt | None = None
    max_bytes: Annotated[PositiveInt, BeforeValidator(_size)] | None = None
    min_messages: PositiveInt | None = None
    max_delay: Duration = timedelta(minutes=15)
    fail_on_data_loss: bool = True
    subscription: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if bool(self.topics) == bool(self.topics_pattern):
            raise ValueError("name one of the options topic, topics, topicsPattern")
        if self.pattern is not None:
            matching(self.pattern[2], [])
        ends = {self.ending.end, *(self.ending.positions or {}).values()} if self.ending else set()
        if "earliest" in ends:
            raise ValueError("endingPosition earliest has no message before it")
        if self.min_messages and self.max_messages and self.min_messages > self.max_messages:
            raise ValueError("minMessagesPerTrigger is above maxMessagesPerTrigger")
        return self

    @property
    def pattern(self) -> tuple[str, str, str] | None:
        """(tenant, namespace, regular expression of the whole local name); None without one."""
        if self.topics_pattern is None:
            return None
        rest = self.topics_pattern.strip().removeprefix("persistent://")
        parts = rest.split("/", 2)
        parts = ["public", "default", *parts] if len(parts) == 1 else parts
        if len(parts) != 3 or not all(parts):
            raise ValueError("topicsPattern is tenant/namespace/regular-expression")
        return parts[0], parts[1], parts[2]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """Of what Spark was given; names in any case. Raises ConfigurationError."""
        known = {name.lower(): (name, field) for name, field in _FIELDS.items()}
        values: dict[str, Any] = {}
        for given, value in options.items():
            found = known.get(given.lower())
            if found is None:
                raise ConfigurationError(
                    f"a stream has no option {given}", hint="one of " + ", ".join(_FIELDS)
                )
            if found[1] in values:
                raise ConfigurationError("both topic and topics are given", hint="give one of them")
            values[found[1]] = value
        if "topic" in {name.lower() for name in options} and "," in str(values.get("topics")):
            raise ConfigurationError(
                "the option topic names one topic", hint="topics names several"
            )
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise _told(error) from error


_FIELDS = {
    "topic": "topics",
    "topics": "topics",
    "topicsPattern": "topics_pattern",
    "startingPosition": "starting",
    "endingPosition": "ending",
    "maxMessagesPerTrigger": "max_messages",
    "maxBytesPerTrigger": "max_bytes",
    "minMessagesPerTrigger": "min_messages",
    "maxTriggerDelay": "max_delay",
    "failOnDataLoss": "fail_on_data_loss",
    "subscription": "subscription",
}
_NAMES = {field: name for name, field in _FIELDS.items()}


def _told(error: ValidationError) -> ConfigurationError:
    first = error.errors()[0]
    text = first["msg"].removeprefix("Value error, ")
    name = _NAMES.get(str(first["loc"][0])) if first["loc"] else None
    return ConfigurationError(f"option {name}: {text}" if name else text)


def partition_of(topics: tuple[Topic, ...], key: tuple[Topic | None, int]) -> Partition:
    """The partition that a position was given for. Raises ConfigurationError for none."""
    topic, index = key
    if topic is None:
        if len(topics) != 1:
            raise ConfigurationError(
                "positions of several topics are given without their names",
                hint='{"public/default/a": {"0": "7:20"}, …}',
            )
        topic = topics[0]
    if topic not in topics:
        raise ConfigurationError(f"positions are given for {topic}, which is not in the stream")
    return Partition(topic, index)
