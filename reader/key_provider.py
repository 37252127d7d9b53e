"""The operator's function that returns private keys by name (``encryption.key_provider``).

Producers choose the names of keys. A name may therefore cause nothing but a question:

- The function is called only with names that match ``KEY_NAME``. Such a name is no path and no URL.
- A failure affects only the rows of that name. It is kept for a minute.
- The function is called by one thread at a time. A topic may spend ``WASTED_SECONDS`` on names that
  have no key of their own, and gets them back within ten minutes. A producer who makes up names
  thus uses up the time of one topic only. A key that is known by another name does not count as a
  name's own key, because a function may return one key for any name.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from reader.errors import UnavailableError

KEY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")
KEPT_SECONDS = 600.0  # tasks are short and many
KEPT_FAILURE_SECONDS = 60.0
WASTED_SECONDS = 120.0
LEAST_SECONDS = 0.1  # the least that a call counts, which bounds the number of calls as well
_MAX_KEYS = 256
_MAX_NAMES_WITHOUT_KEY = 4096  # more than a topic can ask for while an answer is kept
_MAX_TOPICS = 4096

_Kept = TypeVar("_Kept")


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer of the function for one name.

    ``until``: the clock's time until which the answer is kept. ``identity``: equal for the same
    key, however the key is written. ``failure``: why there is no answer, or "".
    """

    until: float
    pem: bytes | None = None
    identity: object = None
    failure: str = ""


class KeyProvider:
    """Calls the function, and keeps its answers for all threads of the process.

    ``function`` returns the PEM of a name, or None if the name has no key. ``identity`` returns an
    equal value for the same key, and raises UnavailableError for bytes that are no private key.
    """

    def __init__(
        self, function: Callable[[str], bytes | None], identity: Callable[[bytes], object]
    ) -> None:
        self._function = function
        self._identity = identity
        self._lock = threading.Lock()
        self._keys: OrderedDict[str, _Answer] = OrderedDict()
        self._without: OrderedDict[str, _Answer] = OrderedDict()
        # By topic: when all wasted time is given back. A wasted second moves this time by five.
        self._settled: OrderedDict[str, float] = OrderedDict()

    def key(self, name: str, topic: str, clock: Callable[[], float]) -> bytes | None:
        """Return the PEM of a name, or None if the name has no key.

        ``topic``: the topic whose entries name the key. ``clock``: returns seconds, and is the same
        for all calls. Raises UnavailableError if the function is not called, or fails.
        """
        if not KEY_NAME.fullmatch(name):
            raise UnavailableError("encryption.key_provider is not called for such a name")
        # First without the lock, which another topic may hold while it calls the function.
        answer = self._kept(name, clock)
        if answer is None:
            with self._lock:
                answer = self._kept(name, clock) or self._ask(name, topic, clock)
        if answer.failure:
            raise UnavailableError(answer.failure)
        return answer.pem

    def _kept(self, name: str, clock: Callable[[], float]) -> _Answer | None:
        answer = self._keys.get(name) or self._without.get(name)
        return answer if answer is not None and answer.until > clock() else None

    def _ask(self, name: str, topic: str, clock: Callable[[], float]) -> _Answer:
        began = clock()
        # A producer cannot have made up a name that had a key.
        had_key = name in self._keys
        settled = max(self._settled.get(topic, began), began)
        if settled - began >= KEPT_SECONDS and not had_key:
            return _Answer(
                began,
                failure="encryption.key_provider was called for too many unknown names of this "
                "topic",
            )
        try:
            pem = self._call(name)
            identity = self._identity(pem) if pem else None
        except UnavailableError as error:
            answer = _Answer(clock() + KEPT_FAILURE_SECONDS, failure=error.message)
        else:
            answer = _Answer(clock() + KEPT_SECONDS, pem or None, identity)
        if not had_key and (answer.pem is None or self._is_known(answer)):
            wasted = max(clock() - began, LEAST_SECONDS)
            settled += wasted * (KEPT_SECONDS / WASTED_SECONDS)
            _keep(self._settled, topic, settled, _MAX_TOPICS)
            _keep(self._without, name, answer, _MAX_NAMES_WITHOUT_KEY)
        else:
            self._without.pop(name, None)
            _keep(self._keys, name, answer, _MAX_KEYS)
        return answer

    def _call(self, name: str) -> bytes | None:
        try:
            pem = self._function(name)
        except Exception as error:
            # Everybody can read a row's reason, and the error's text may contain a secret.
            raise UnavailableError(
                f"encryption.key_provider raised {type(error).__name__}"
            ) from error
        if not isinstance(pem, bytes | None):
            raise UnavailableError("encryption.key_provider returned neither bytes nor None")
        return pem

    def _is_known(self, answer: _Answer) -> bool:
        return any(key.pem and key.identity == answer.identity for key in self._keys.values())


def _keep(kept: OrderedDict[str, _Kept], name: str, value: _Kept, limit: int) -> None:
    kept[name] = value
    kept.move_to_end(name)
    while len(kept) > limit:
        kept.popitem(last=False)
