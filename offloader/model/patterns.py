"""Patterns of topic names, and which settings hold for a topic. Pure.

A pattern is ``tenant/namespace/name``; in each of the three ``*`` stands for any characters and
``?`` for one.
"""

import re
from functools import lru_cache

from offloader.config import OffloadConfig
from reader.model import Topic


def is_pattern(text: str) -> bool:
    """Whether ``text`` has a wildcard in it."""
    return "*" in text or "?" in text


def matches(pattern: str, text: str) -> bool:
    """Whether one part of a name, or all of it, fits one part of a pattern, or all of it."""
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = pattern.removeprefix("persistent://").split("/", 2)
    # A * of tenant or namespace ends with it; a topic's own name may have slashes.
    any_of = ["[^/]"] * (len(parts) - 1) + ["."]
    texts = []
    for part, one in zip(parts, any_of, strict=True):
        wild = {"*": f"{one}*", "?": one}
        texts.append("".join(wild.get(char) or re.escape(char) for char in part))
    return re.compile("/".join(texts), re.DOTALL)


def settings_of(config: OffloadConfig, topic: Topic) -> OffloadConfig:
    """``config`` with the overrides that match, in their order: the last one wins, key by key."""
    changes: dict[str, object] = {}
    for one in config.override:
        if matches(one.topics, topic.local_name):
            changes |= one.model_dump(exclude={"topics", "enabled"}, exclude_none=True)
    return config.model_copy(update=changes) if changes else config


def is_enabled(config: OffloadConfig, topic: Topic) -> bool:
    """What the last matching override that has ``enabled`` says; True without any."""
    found = [
        one.enabled
        for one in config.override
        if one.enabled is not None and matches(one.topics, topic.local_name)
    ]
    return found[-1] if found else True
