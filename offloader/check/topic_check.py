"""Which topics the settings name, what the role may do with them, what Pulsar would delete.

Of many topics some are asked for, of as many namespaces as there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from offloader.check.outcome import Finding, Waiting
from offloader.config import OffloadConfig
from offloader.model import is_enabled, is_pattern, settings_of
from offloader.schedule import Lookup, parse_names
from offloader.subscription import shadow_note, unsafe_settings
from reader.errors import ConfigurationError, NotFoundError
from reader.model import Partition, Topic
from reader.plan import migrated_note
from reader.pulsar import AdminClient

_MOST_ASKED = 20
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class FoundTopics:
    """What ``offload.topics`` stands for.

    ``topics``: with the partitions that Pulsar shows, without those that are switched off, of which
    there are ``disabled``. ``refused``: patterns, and names, that the role may not look up, with
    what Pulsar says. ``gone``: those that name what is not there. ``unmatched``: patterns that
    match no topic.
    """

    topics: Mapping[Topic, tuple[Partition, ...]]
    disabled: int = 0
    refused: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()

    def first_partition(self, topic: Topic) -> Partition:
        """One to ask a broker for: it has the topic's permissions."""
        return next(iter(self.topics[topic]), Partition(topic, -1))


def find(admin: AdminClient, offload: OffloadConfig, waiting: Waiting) -> FoundTopics:
    """The topics, by one look at Pulsar's lists. Raises UnavailableError."""
    waiting(admin.http.url)
    lookup = Lookup(admin)
    found: dict[Topic, tuple[Partition, ...]] = {}
    refused: list[str] = []
    gone: list[str] = []
    unmatched: list[str] = []
    for pattern in parse_names(offload.topics) if offload.topics else ():
        try:
            if is_pattern(pattern.local_name):
                matched = lookup.find(pattern)
                if not matched:
                    unmatched.append(str(pattern))
                found |= matched
            else:
                found[pattern] = tuple(admin.partitions(pattern))
        except NotFoundError as error:
            gone.append(error.message)
        except ConfigurationError as error:
            refused.append(str(error))
    enabled = {topic: those for topic, those in found.items() if is_enabled(offload, topic)}
    return FoundTopics(
        enabled, len(found) - len(enabled), tuple(refused), tuple(gone), tuple(unmatched)
    )


def spread(topics: Sequence[Topic], most: int) -> list[Topic]:
    """So many of the topics, of as many namespaces as possible, in their order."""
    by_namespace: dict[tuple[str, str], list[Topic]] = {}
    for one in topics:
        by_namespace.setdefault((one.tenant, one.namespace), []).append(one)
    rows = chain.from_iterable(zip_longest(*by_namespace.values()))
    return [one for one in rows if one is not None][:most]


def check_role(
    admin: AdminClient, offload: OffloadConfig, found: FoundTopics, waiting: Waiting
) -> Finding:
    """What offloader and queries need: to list the topics, to consume them, to have the hold.

    Nothing is made or moved. Raises UnavailableError.
    """
    waiting(admin.http.url)
    refused = list(found.refused)
    asked = spread(list(found.topics), _MOST_ASKED)
    for topic in asked:
        try:
            admin.require_consume(topic)
            # Asking for the hold's properties takes what making it does.
            admin.hold_properties(found.first_partition(topic), offload.subscription)
        except ConfigurationError as error:
            refused.append(str(error))
    if refused:
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        return Finding.failed(
            refused[0] + more,
            "docs/security.md, Permissions: pulsar-admin namespaces grant-permission "
            "<tenant/namespace> --role <role> --actions consume",
        )
    kind = "a superuser" if _is_superuser(admin) else "no superuser"
    if not offload.topics:
        return Finding.ok(f"{kind}; offload.topics names nothing to ask for")
    some = "" if len(asked) == len(found.topics) else f", {len(asked)} asked for"
    return Finding.ok(
        f"{kind}, may list and consume {_count(len(found.topics), 'topic')}{some}, "
        f"and have the subscription {offload.subscription}"
    )


def _is_superuser(admin: AdminClient) -> bool:
    try:
        admin.brokers()
    except ConfigurationError:
        return False
    return True


def check_topics(
    admin: AdminClient, offload: OffloadConfig, found: FoundTopics, waiting: Waiting
) -> Finding:
    """What ``offload.topics`` matches, and which settings would delete messages under the hold.

    Raises UnavailableError.
    """
    waiting(admin.http.url)
    patterns = ", ".join(offload.topics)
    if not offload.topics:
        return Finding.warning(
            "offload.topics is empty: queries work, and nothing is offloaded",
            'set it, for example to ["public/default/*"]',
        )
    if found.gone:
        return Finding.warning("; ".join(found.gone), "create it, or correct offload.topics")
    if not found.topics:
        off = f", beside {found.disabled} that are switched off" if found.disabled else ""
        return Finding.warning(
            f"{patterns} matches no topic{off}", "publish to one, or correct offload.topics"
        )
    names = [topic.local_name for topic in found.topics]
    text = f"{_count(len(names), 'topic')}: {', '.join(names[:_MOST_NAMED])}"
    text += f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    text += f"; {found.disabled} switched off" if found.disabled else ""
    if found.unmatched:
        return Finding.warning(
            f"{text}; {', '.join(found.unmatched)} matches no topic", "correct offload.topics"
        )
    for topic in spread(list(found.topics), _MOST_ASKED):
        notes = list[str | None]()
        notes += [shadow_note(admin, topic, notes.append), migrated_note(admin, topic)]
        for note in notes:
            if note is not None:
                return Finding.warning(f"{text}; {note}", _KINDS)
        unsafe = unsafe_settings(admin, topic)
        if unsafe and settings_of(offload, topic).unsafe_retention == "refuse":
            return Finding.failed(f"{topic} is not offloaded: {unsafe[0]}", _UNSAFE)
        if unsafe:
            return Finding.warning(f"{text}; {topic}: {unsafe[0]}", _UNSAFE)
    return Finding.ok(f"{text}; nothing there deletes what is not offloaded")


_KINDS = "docs/limitations.md, Offloading: shadow topics, scalable topics"
_UNSAFE = (
    "docs/operations.md, Before the first topic; a role that may only consume cannot ask: run this "
    "once with the tenant's administrator"
)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
