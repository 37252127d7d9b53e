"""TLS as a client: one place that makes contexts, and says whose fault a failure is."""

from __future__ import annotations

import ssl
from pathlib import Path

from reader.errors import ConfigurationError

__all__ = ["certificate_error", "client_context"]


def client_context(
    section: str,
    *,
    trust: Path | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    verify_hostname: bool = True,
) -> ssl.SSLContext:
    """A context that checks the server's certificate, and shows ours if there is one.

    ``trust``: the authorities to believe (PEM); None: those of the system. ``section``: where the
    settings are, for errors. Raises ConfigurationError for files that cannot be used.
    """
    if (certificate is None) != (key is None):
        raise ConfigurationError(
            f"{section}: a client certificate needs its private key",
            hint="set tls_certificate_file and tls_key_file together",
        )
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


def _no_password() -> str:
    # Without this OpenSSL would ask on the terminal.
    raise ValueError("the private key is encrypted; give one without a password")


def certificate_error(error: BaseException) -> str | None:
    """Why a server's certificate was not accepted, if that is what ``error`` comes from."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, ssl.SSLCertVerificationError):
            return found.verify_message
        found = found.__cause__ or found.__context__
    return None
