"""SilentBookies: the bookies that the clients of one process do not ask for a while."""

import threading
from dataclasses import dataclass

_SILENT_SECONDS = 15.0
_LONGEST_SILENT_SECONDS = 120.0


@dataclass(slots=True)
class _Silence:
    reason: str
    times: int
    until: float
    probe: object  # the client that may ask the bookie meanwhile
    probe_until: float = 0.0


class SilentBookies:
    """The bookies that did not answer one of several clients in time. Thread-safe.

    For a while no other client asks such a bookie: 15 s, doubled with each silence up to two
    minutes. Then one client asks it, and the other clients wait for the outcome. Any answer ends
    the silence. The client that found it may ask on: a bookie that trickles may give single
    entries.

    ``client``: an object for each client. ``now``: seconds, monotonic.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._silences: dict[str, _Silence] = {}

    def allows(self, bookie: str, client: object, now: float) -> bool:
        """Return whether a client may ask the bookie."""
        if bookie not in self._silences:
            return True
        with self._lock:
            silence = self._silences.get(bookie)
            if silence is None or silence.probe is client:
                return True
            return now >= silence.until and now >= silence.probe_until

    def record_request(self, bookie: str, client: object, seconds: float, now: float) -> None:
        """Record that a client asks the bookie, which has ``seconds`` to answer."""
        if bookie in self._silences:
            with self._lock:
                silence = self._silences.get(bookie)
                if silence is not None and now >= silence.until and now >= silence.probe_until:
                    silence.probe, silence.probe_until = client, now + seconds

    def record_silence(self, bookie: str, client: object, reason: str, now: float) -> None:
        """Record that the bookie did not answer a client in time.

        ``reason``: a line that names the bookie.
        """
        with self._lock:
            known = self._silences.get(bookie)
            if known is not None and now < known.until:
                return  # asked before the silence was known, or by the client that found it
            times = known.times + 1 if known is not None else 1
            seconds = min(_SILENT_SECONDS * 2 ** (times - 1), _LONGEST_SILENT_SECONDS)
            self._silences[bookie] = _Silence(reason, times, now + seconds, client)

    def record_answer(self, bookie: str) -> None:
        """Record that the bookie answers, if only with an error of its own."""
        if bookie in self._silences:
            with self._lock:
                self._silences.pop(bookie, None)

    def reason(self, bookie: str, now: float) -> str:
        """Return why the bookie is not asked, and for how long; "" if it is not silent."""
        with self._lock:
            silence = self._silences.get(bookie)
            if silence is None:
                return ""
            left = max(silence.until, silence.probe_until) - now
            return f"{silence.reason}, and is asked again in {max(0.0, left):.0f} s"
