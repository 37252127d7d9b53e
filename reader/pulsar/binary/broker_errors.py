"""What a broker refuses, as our errors: the one place that knows Pulsar's ServerError."""

from __future__ import annotations

from reader.errors import (
    ConfigurationError,
    NotFoundError,
    PulsarLakeError,
    UnavailableError,
    plain_text,
)

__all__ = ["refusal"]

_IDENTITY = (3, 4)  # AuthenticationError, AuthorizationError
_TOPIC_NOT_FOUND = 11
_OUR_FAULT = (10, 17, 22)  # UnsupportedVersionError, InvalidTopicName, NotAllowedError


def refusal(error: int | None, text: str, what: str) -> PulsarLakeError:
    """The error for a ServerError. ``what``: was asked for, and of whom."""
    said = plain_text(text) or f"error {error}"
    if error in _IDENTITY:
        return ConfigurationError(
            f"no permission for {what}", hint=f"check the identity in [pulsar]: {said}"
        )
    if error == _TOPIC_NOT_FOUND:
        return NotFoundError(f"{what} does not exist: {said}")
    if error in _OUR_FAULT:
        return ConfigurationError(f"the broker refuses {what}", hint=said)
    # Among the others all that a new lookup puts right, ServiceNotReady above all.
    return UnavailableError(f"the broker does not serve {what}: {said}")
