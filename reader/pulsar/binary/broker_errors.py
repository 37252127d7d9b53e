"""What a broker refuses, as our errors: the one place that knows Pulsar's ServerError."""

from google.protobuf.message import Message

from reader import errors
from reader.wire import pulsar_pb2 as api

_LOCATED = (api.CommandLookupTopicResponse.Redirect, api.CommandLookupTopicResponse.Connect)
_IDENTITY = (api.ServerError.AuthenticationError, api.ServerError.AuthorizationError)
_OUR_FAULT = (
    api.ServerError.UnsupportedVersionError,
    api.ServerError.InvalidTopicName,
    api.ServerError.NotAllowedError,
)


def failed_answer(answer: Message) -> api.CommandError | None:
    """Return the error of an answer, or None if the request succeeded."""
    match answer:
        case api.CommandError():
            return answer
        case api.CommandLookupTopicResponse(response=response):
            if response not in _LOCATED or answer.HasField("error"):
                error = answer.error if answer.HasField("error") else None
                return api.CommandError(error=error, message=answer.message)
        case api.CommandGetSchemaResponse():
            if answer.HasField("error_code") or not answer.HasField("schema"):
                error = answer.error_code if answer.HasField("error_code") else None
                return api.CommandError(error=error, message=answer.error_message)
    return None


def refusal(failed: api.CommandError | api.CommandSendError, what: str) -> errors.PulsarLakeError:
    """Return the error for a api.ServerError. what: the request, and its topic."""
    error = failed.error if failed.HasField("error") else None
    said = broker_text(failed) or f"error {error}"
    if error in _IDENTITY:
        return errors.ConfigurationError(
            f"no permission for {what}", hint=f"check the identity in [pulsar]: {said}"
        )
    if error == api.ServerError.TopicNotFound:
        return errors.NotFoundError(f"{what} does not exist: {said}")
    if error in _OUR_FAULT:
        return errors.ConfigurationError(f"the broker refuses {what}", hint=said)
    # Among the others all that a new lookup puts right, ServiceNotReady above all.
    return errors.UnavailableError(f"the broker does not serve {what}: {said}")


def broker_text(failed: api.CommandError | api.CommandSendError) -> str:
    """Return what a broker writes about an error, as one line."""
    return errors.plain_text(failed.message.decode(errors="replace"))
