"""TLS as a client: one place that makes contexts, and says whose fault a failure is.

A context takes tens of milliseconds to make, most of it for the system's authorities: there is one
a process for the same section and files, for as long as nobody changes them.
"""

import os
import ssl
import threading
from collections import OrderedDict
from pathlib import Path

from reader.errors import ConfigurationError
from reader.rotation import FileState, file_state

_MOST_KEPT = 64
"""More than ``clients.process_clients`` keeps settings, each with up to three sections."""

_MOST_CAUSES = 32

_Key = tuple[str, FileState, FileState, FileState, bool]

_lock = threading.Lock()
_kept: OrderedDict[_Key, ssl.SSLContext] = OrderedDict()


def client_context(
    section: str,
    *,
    trust: Path | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    verify_hostname: bool = True,
) -> ssl.SSLContext:
    """A context that checks the server's certificate, and shows ours if there is one.

    The same one for a section until the files are others. No two sections share one, whatever
    their files: httpx sets in those it is given what to offer (ALPN), which bookies are not to see.
    ``trust``: the authorities to believe (PEM); None: those of the system. ``section``: where the
    settings are, for errors too. Raises ConfigurationError for files that cannot be used.
    """
    if (certificate is None) != (key is None):
        raise ConfigurationError(
            f"{section}: a client certificate needs its private key",
            hint="set tls_certificate_file and tls_key_file together",
        )
    states = file_state(trust), file_state(certificate), file_state(key)
    known = (section, *states, verify_hostname)
    with _lock:
        if known not in _kept:
            _kept[known] = _new(section, trust, certificate, key, verify_hostname)
        _kept.move_to_end(known)
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
        return _kept[known]


def _new(
    section: str,
    trust: Path | None,
    certificate: Path | None,
    key: Path | None,
    verify_hostname: bool,
) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=None if trust is None else str(trust))
        if certificate is not None:
            context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:
        names = ", ".join(str(one) for one in (trust, certificate, key) if one is not None)
        why = getattr(error, "strerror", None) or getattr(error, "reason", None) or error
        raise ConfigurationError(
            f"{section}: cannot use the certificates for TLS: {why}", hint=f"PEM files: {names}"
        ) from error
    context.check_hostname = verify_hostname
    return context


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()  # a thread of the parent may have had it


os.register_at_fork(after_in_child=_after_fork)


def _no_password() -> str:
    # Without this OpenSSL would ask on the terminal.
    raise ValueError("the private key is encrypted; give one without a password")


def certificate_error(error: BaseException) -> str | None:
    """Why a server's certificate was not accepted, if that is what ``error`` comes from."""
    found: BaseException | None = error
    for _ in range(_MOST_CAUSES):  # an error may be its own cause
        if isinstance(found, ssl.SSLCertVerificationError):
            return found.verify_message
        if found is None:
            return None
        found = found.__cause__ or found.__context__
    return None
