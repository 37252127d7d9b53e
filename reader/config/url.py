"""URLs in the settings: errors, logs, plans and views show them, so none may have a password."""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_HOST_AND_PORT = re.compile(r"[^@/:]+:\d{2,5}/")
# No narrower than where tables are, no wider than what delta-rs can parse: it says of anything
# else that there is no table. Nor a query: a table's path is appended.
_STORAGE = re.compile(
    r"file:/[^?#]*"
    r"|[A-Za-z][A-Za-z0-9+.-]+://([^/@?#]*@)?([\w.$-]+|\[[\da-fA-F:.]+\])?(:\d+)?(/[^?#]*)?"
)


def _url(text: str) -> str:
    if text and not _SCHEME.match(text):
        raise PydanticCustomError("url", "a URL has to begin with its scheme and ://")
    return refuse_user(text)


def refuse_user(text: str) -> str:
    """The text itself. Raises as a pydantic validator does for a URL with a user in it."""
    place = text.partition("://")[2] or text
    if "@" in place.partition("/")[0] or _has_password(place):
        raise PydanticCustomError("url", "a URL must not have a user or a password in it")
    return text


Url = Annotated[str, AfterValidator(_url)]
""""", or one with a scheme and without a user."""


def _storage_url(text: str) -> str:
    if text.startswith(("/", ".")):
        return text
    if _has_password(text.partition("://")[2] or text):
        raise PydanticCustomError(
            "url", "a URL must not have a password in it (nor a : before an @)"
        )
    if not _parses(text):
        raise PydanticCustomError("url", "neither a path nor a URL such as s3://bucket/prefix")
    return text


StorageUrl = Annotated[str, AfterValidator(_storage_url)]
"""A path, or a URL that may have a user or a container before an @."""


def _has_password(place: str) -> bool:
    """Wherever the @ is: a password may have a / in it, and keys of Amazon's often do."""
    user, at, _ = place.rpartition("@")
    return bool(at) and ":" in user and not _HOST_AND_PORT.match(place)


def _parses(text: str) -> bool:
    try:
        parsed = urlsplit(text)
        _ = parsed.port
    except ValueError:  # it is no number, or the brackets have no address in them
        return False
    is_path = len(parsed.scheme) <= 1  # a drive's letter
    return is_path or _STORAGE.fullmatch(text) is not None
