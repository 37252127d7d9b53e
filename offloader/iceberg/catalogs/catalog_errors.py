"""What PyIceberg and the clients of catalogs raise, as errors of ours, without their secrets.

Their clients have no common root, and not all of them are installed. So an error's class decides by
its names, those of its bases included: what is named here is an outage, a refusal or a setting, and
all else is a defect, which is not tried again as if somebody were away.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from reader import errors

# The first that fits: a class is also what its bases are.
_KINDS: tuple[tuple[frozenset[str], type[errors.PulsarLakeError], str], ...] = (
    (
        frozenset({"builtins.ImportError", "pyiceberg.exceptions.NotInstalledError"}),
        errors.ConfigurationError,
        "pip install 'pulsar-lake[iceberg]', and what PyIceberg needs for this catalog",
    ),
    (
        frozenset(
            {
                "botocore.exceptions.NoCredentialsError",
                "builtins.PermissionError",
                "pyiceberg.exceptions.ForbiddenError",
                "pyiceberg.exceptions.OAuthError",
                "pyiceberg.exceptions.UnauthorizedError",
                "sqlalchemy.exc.ProgrammingError",  # the right to a table, or the table itself
            }
        ),
        errors.ConfigurationError,
        "check iceberg.options and [storage]: who are we there, and what may we?",
    ),
    (
        frozenset(
            {
                "pyiceberg.exceptions.BadRequestError",
                "pyiceberg.exceptions.NoSuchPropertyException",
                "requests.exceptions.InvalidSchema",
                "requests.exceptions.InvalidURL",
                "requests.exceptions.MissingSchema",
                "sqlalchemy.exc.ArgumentError",
                "sqlalchemy.exc.NoSuchModuleError",
            }
        ),
        errors.ConfigurationError,
        "check iceberg.catalog and iceberg.options",
    ),
    (
        frozenset(
            {
                "pyiceberg.exceptions.CommitFailedException",
                # Between our loading and our commit.
                "pyiceberg.exceptions.NoSuchNamespaceError",
                "pyiceberg.exceptions.NoSuchTableError",
                "pyiceberg.exceptions.TableAlreadyExistsError",
            }
        ),
        errors.CommitConflictError,
        "",
    ),
    (
        frozenset({"builtins.FileNotFoundError"}),
        errors.CorruptError,
        "if it stays so, drop the Iceberg table from its catalog: it is made again",
    ),
    (
        frozenset({"pydantic_core._pydantic_core.ValidationError"}),
        errors.CorruptError,
        "is that an Iceberg catalog, and are its metadata whole?",
    ),
    (
        frozenset(
            {
                "botocore.exceptions.BotoCoreError",
                "botocore.exceptions.ClientError",
                "builtins.OSError",  # and so all others of requests
                "pyiceberg.exceptions.AuthorizationExpiredError",
                "pyiceberg.exceptions.CommitStateUnknownException",
                "pyiceberg.exceptions.ServerError",
                "pyiceberg.exceptions.ServiceUnavailableError",
                "pyiceberg.exceptions.TooManyRequestsError",
                "pyiceberg.exceptions.WaitingForLockException",
                "sqlalchemy.exc.DBAPIError",
                "sqlalchemy.exc.DisconnectionError",
                "sqlalchemy.exc.TimeoutError",
                "thrift.Thrift.TException",
            }
        ),
        errors.UnavailableError,
        "check the catalog, [iceberg] and [storage]",
    ),
    (
        frozenset({"pyiceberg.exceptions.RESTError"}),  # answers that are none of those above
        errors.ConfigurationError,
        "check iceberg.catalog and iceberg.options: is that an Iceberg catalog?",
    ),
)

_USER = re.compile(r"://[^/@\s]+@")
_SHOWN = {"uri", "warehouse", "type", "prefix", "scope", "header.accept", "ssl"}
# Of a URI: the values of its query, and the password, which may have any character.
_IN_URI = re.compile(r"[?&][^=&]*=([^&]+)|://[^:/@]*:(.+)@")
_SHORTEST = 4


@contextmanager
def catalog_errors(what: str, options: Mapping[str, str]) -> Iterator[None]:
    """``what`` could not be done. No value of ``options`` but a place is in the message.

    Raises CommitConflictError where the catalog refused a commit as one that came too late, or the
    table was made or dropped meanwhile, ConfigurationError for what only the user can put right,
    CorruptError where Iceberg's metadata are damaged or gone, UnavailableError where something did
    not answer, or not in time. PulsarLakeError itself: a defect, by the name of what was raised.
    Only with PULSAR_LAKE_DEBUG that is the cause: it may quote the catalog's properties.
    """
    try:
        yield
    except errors.PulsarLakeError:
        raise
    except Exception as error:  # noqa: BLE001 - of any catalog's client: they have no common root
        raise _named(what, error, options) from (error if errors.debugging() else None)


def _named(what: str, error: Exception, options: Mapping[str, str]) -> errors.PulsarLakeError:
    names = {f"{one.__module__}.{one.__qualname__}" for one in type(error).__mro__}
    said = _text(error, options)
    for classes, kind, hint in _KINDS:
        if names & classes:
            return kind(f"{what}: {said or type(error).__name__}", hint=hint or None)
    return errors.PulsarLakeError(
        f"{what}: {type(error).__name__}: {said}",
        hint="this is a defect, please report it; PULSAR_LAKE_DEBUG=1 shows where",
    )


def _text(error: Exception, options: Mapping[str, str]) -> str:
    text = str(error)
    for secret in _secrets(options):
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, "***")
    return errors.plain_text(_USER.sub("://***@", text))


def _secrets(options: Mapping[str, str]) -> Iterator[str]:
    for name, value in options.items():
        if name in _SHOWN:
            yield from (part for found in _IN_URI.findall(value) for part in found)
        else:
            yield value
