"""Which topics the offloader serves: names, and ``tenant/namespace/*`` wildcards."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from reader.admin import AdminClient
from reader.errors import ConfigurationError
from reader.model import Topic

__all__ = ["find_topics"]


def find_topics(admin: AdminClient, names: Sequence[str]) -> list[Topic]:
    """The topics that ``names`` stand for, each once, in order.

    A ``*`` in the last part is asked for anew each time, so that new topics are found; Pulsar's
    own system topics are left out. A name without one is taken as it is, whether it exists or
    not: its turn will tell. Raises ConfigurationError for a bad name, or none.
    """
    if not names:
        raise ConfigurationError(
            "no topic to offload", hint="name some, or set offload.topics in the configuration"
        )
    found: dict[Topic, None] = {}
    for name in names:
        topic = Topic.parse(name)
        if "*" in topic.tenant or "*" in topic.namespace:
            raise ConfigurationError(
                f"{name!r}: a wildcard stands in the place of the topic only",
                hint="write tenant/namespace/*",
            )
        if "*" in topic.name:
            there = admin.topics(topic.tenant, topic.namespace)
            found |= {one: None for one in there if fnmatchcase(one.name, topic.name)}
        else:
            found[topic] = None
    return list(found)
