"""Whether the process is alive, and whether it is ready to offload. Pure."""

from offloader.service.monitor import Round

LOOP_SECONDS = 300.0
"""The scheduler's loop runs twice a second, and reports progress between the lists of a round: no
single request takes so long."""

_ROUNDS = 3
_SLACK_SECONDS = 120.0


def not_alive(loop_age: float, *, stopping: bool) -> str | None:
    """Why the process should be restarted; None: it is alive.

    ``loop_age``: seconds since the scheduler's loop made progress.
    """
    if loop_age > LOOP_SECONDS and not stopping:  # the running commits may finish
        return f"the scheduler's loop last made progress {loop_age:.0f} s ago"
    return None


def not_ready(
    now: float, last: Round | None, interval: float, storage: str | None, *, stopping: bool
) -> str | None:
    """Why nothing can be offloaded now; None: it can.

    ``now``: seconds of a monotonic clock, as ``last.at``; ``interval``: seconds from round to
    round. ``storage``: why the storage does not answer, None if it does.
    """
    if stopping:
        return "the process is being stopped"
    if last is None:
        return "the first round has not finished"
    if last.unanswered:
        return f"Pulsar: {last.unanswered}"
    if now - last.at > _ROUNDS * interval + _SLACK_SECONDS:
        return f"Pulsar last answered {now - last.at:.0f} s ago"
    return None if storage is None else f"storage: {storage}"
