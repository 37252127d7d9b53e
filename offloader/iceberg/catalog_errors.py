"""What PyIceberg and the clients of catalogs raise, as errors of ours, without their secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyiceberg.exceptions import (
    CommitFailedException,
    ForbiddenError,
    NotInstalledError,
    OAuthError,
    UnauthorizedError,
)

from reader.errors import (
    CommitConflictError,
    ConfigurationError,
    PulsarLakeError,
    UnavailableError,
    plain_text,
)

__all__ = ["catalog_errors"]

_REFUSED = (ForbiddenError, OAuthError, UnauthorizedError)
_USER = re.compile(r"://[^/@\s]+@")
_SHOWN = {"uri", "warehouse", "type", "prefix", "scope", "header.accept", "ssl"}
# Of a URI: the values of its query, and the password, which may have any character.
_IN_URI = re.compile(r"[?&][^=&]*=([^&]+)|://[^:/@]*:(.+)@")
_SHORTEST = 4


@contextmanager
def catalog_errors(what: str, options: Mapping[str, str]) -> Iterator[None]:
    """``what`` could not be done. No value of ``options`` but a place is in the message.

    Raises CommitConflictError where the catalog refused a commit as one that came too late,
    ConfigurationError for what only the user can put right, UnavailableError for all else.
    """
    try:
        yield
    except PulsarLakeError:
        raise
    except CommitFailedException as error:
        raise CommitConflictError(f"{what}: {_text(error, options)}") from None
    except (ImportError, NotInstalledError) as error:
        raise ConfigurationError(
            f"{what}: {_text(error, options)}",
            hint="pip install 'pulsar-lake[iceberg]', and what PyIceberg needs for this catalog",
        ) from None
    except _REFUSED as error:
        raise ConfigurationError(
            f"{what}: {_text(error, options)}", hint="check iceberg.options: who are we there?"
        ) from None
    except Exception as error:  # noqa: BLE001 - of any catalog's client: they have no common root
        # Not "from error": it may quote the catalog's properties.
        text = _text(error, options) or type(error).__name__
        raise UnavailableError(
            f"{what}: {text}", hint="check the catalog, [iceberg] and [storage]"
        ) from None


def _text(error: Exception, options: Mapping[str, str]) -> str:
    text = str(error)
    for secret in _secrets(options):
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, "***")
    return plain_text(_USER.sub("://***@", text))


def _secrets(options: Mapping[str, str]) -> Iterator[str]:
    for name, value in options.items():
        if name in _SHOWN:
            yield from (part for found in _IN_URI.findall(value) for part in found)
        else:
            yield value
