"""Whether this host's clock agrees with the broker's and with the storage's.

What depends on it: maintenance and Iceberg refuse to run from five minutes apart
(``commit/storage_clock.py``), S3 refuses requests from fifteen; tokens begin and end by the
broker's clock; ledgers are due, chunked messages given up and rows expired by this host's, compared
with times of brokers and producers. Machines with NTP are within a tenth of a second. HTTP gives
whole seconds, so less than two cannot be told: more says that a clock is not synchronised, and it
will drift further.
"""

from collections.abc import Mapping

from offloader.check.outcome import Finding
from offloader.check.storage_check import StoredAt

_WARNED_MS = 2_000
_FAILED_MS = 5 * 60_000
_WHOLE_SECOND_MS = 999
"""What a time in whole seconds may leave out."""


def ahead_ms(at: StoredAt) -> int | None:
    """By how much this host's clock is ahead at least (behind: negative); 0 where it may be right.

    None where the other side does not say.
    """
    if at.there_ms is None:
        return None
    if at.before_ms > at.there_ms + _WHOLE_SECOND_MS:
        return at.before_ms - at.there_ms - _WHOLE_SECOND_MS
    return min(at.after_ms - at.there_ms, 0)


def check_clocks(times: Mapping[str, StoredAt]) -> Finding:
    """``times``: who was asked ("the broker"), and what that one answered."""
    apart = {name: ahead for name, at in times.items() if (ahead := ahead_ms(at)) is not None}
    if not apart:
        return Finding.skipped("neither the broker nor the storage says what time it is")
    worst = max(apart, key=lambda name: abs(apart[name]))
    if abs(apart[worst]) < _WARNED_MS:
        return Finding.ok(f"this clock and that of {' and '.join(apart)} agree")
    side = "ahead of" if apart[worst] > 0 else "behind"
    text = f"this clock is {_text(abs(apart[worst]))} {side} that of {worst}"
    if abs(apart[worst]) >= _FAILED_MS:
        return Finding.failed(
            f"{text}: maintenance does not run, and storage or tokens may be refused", _FIX
        )
    return Finding.warning(text, _FIX)


_FIX = "synchronise both by NTP (timedatectl set-ntp true)"


def _text(ms: int) -> str:
    return f"{ms / 1000:.0f} s" if ms < 120_000 else f"{ms / 60_000:.0f} minutes"
