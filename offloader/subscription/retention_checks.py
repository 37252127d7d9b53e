"""Settings of Pulsar that delete messages although the hold is there.

- A *message TTL* moves every subscription past what is older, the hold as well.
- *Subscription expiry* deletes subscriptions that nobody is connected to; nobody ever is to ours.
- A *backlog quota* with ``consumer_backlog_eviction`` moves subscriptions that lag too far.
- One with ``producer_request_hold`` or ``producer_exception`` stops producers, because the hold
  counts as a backlog, too: nothing is lost, but nothing is published either.

Retention is none of them: it only concerns what no subscription needs.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from offloader.config import OffloadConfig
from reader.errors import ConfigurationError
from reader.model import Topic

_EVICTION = "consumer_backlog_eviction"

_CHECK_SECONDS = 3600.0


class PolicyReader(Protocol):
    """What is asked of Pulsar (``AdminClient``)."""

    def message_ttl(self, topic: Topic) -> int | None: ...

    def subscription_expiry(self, topic: Topic) -> int | None: ...

    def backlog_quotas(self, topic: Topic) -> Mapping[str, Mapping[str, Any]]: ...


class RetentionChecks:
    """Checks each topic at first, then each hour. Thread-safe; who meets at a topic may ask twice.

    ``elapsed``: seconds of a monotonic clock; ``say`` is told, for operators, of each setting that
    is new.
    """

    def __init__(
        self,
        admin: PolicyReader,
        config: OffloadConfig,
        *,
        elapsed: Callable[[], float],
        say: Callable[[str], None],
    ) -> None:
        self._admin = admin
        self._config = config
        self._elapsed = elapsed
        self._say = say
        self._checked: dict[Topic, tuple[float, tuple[str, ...]]] = {}

    def check(self, topic: Topic) -> tuple[str, ...]:
        """The topic's unsafe settings, as the last check found them.

        Raises ConfigurationError where there is any and ``offload.unsafe_retention`` says so.
        """
        checked_at, found = self._checked.get(topic, (-math.inf, ()))
        if self._elapsed() - checked_at >= _CHECK_SECONDS:
            known, found = found, unsafe_settings(self._admin, topic)
            for text in found:
                if text not in known:
                    self._say(f"{topic}: unsafe retention: {text}")
            self._checked[topic] = self._elapsed(), found
        if found and self._config.unsafe_retention == "refuse":
            raise ConfigurationError(
                f"not offloaded: {found[0]}",
                hint='offload.unsafe_retention = "warn" goes on all the same',
            )
        return found


def unsafe_settings(admin: PolicyReader, topic: Topic) -> tuple[str, ...]:
    """What applies to the topic, a line each with what to do; three requests.

    A line says so where the role may not ask.
    """
    try:
        ttl = admin.message_ttl(topic)
        expiry = admin.subscription_expiry(topic)
        quotas = admin.backlog_quotas(topic)
    except ConfigurationError as error:
        return (f"cannot check for a TTL, subscription expiry and backlog quota: {error}",)
    found = []
    if ttl:
        found.append(
            f"message TTL {ttl} s: what is not offloaded by then is deleted; set it to 0, or keep "
            "the lag far below it"
        )
    if expiry:
        found.append(
            f"subscription expiry {expiry} min: Pulsar deletes the hold; set "
            "subscriptionExpirationTimeMinutes to 0 for the namespace"
        )
    found += [line for kind, quota in sorted(quotas.items()) if (line := _quota(kind, quota))]
    return tuple(found)


def _quota(kind: str, quota: Mapping[str, Any]) -> str | None:
    limit = max(int(quota.get("limitSize") or 0), int(quota.get("limit") or 0))
    seconds = int(quota.get("limitTime") or 0)
    if limit <= 0 and seconds <= 0:
        return None
    what = f"backlog quota {kind} of {limit} B" if limit > 0 else f"backlog quota of {seconds} s"
    policy = str(quota.get("policy"))
    if policy == _EVICTION:
        return (
            f"{what}, {policy}: beyond it Pulsar deletes what is not offloaded; use another policy"
        )
    return f"{what}, {policy}: producers are stopped when offloading lags that far"
