"""What can go wrong while a version's log and files are read."""

from collections.abc import Generator
from contextlib import contextmanager

import pyarrow as pa

from reader.errors import CorruptError, NotFoundError, PulsarLakeError, UnavailableError, plain_text
from reader.model import Topic


@contextmanager
def file_errors(topic: Topic, version: int | None) -> Generator[None]:
    """pyarrow's errors as ours: NotFoundError, UnavailableError, CorruptError."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFoundError(
            f"a file of version {version} of the table of {topic} is gone: {plain_text(error)}",
            hint="vacuumed since: scan anew",
        ) from error
    except OSError as error:
        raise UnavailableError(f"cannot read the table of {topic}: {plain_text(error)}") from error
    except pa.ArrowException as error:
        raise CorruptError(f"cannot read the table of {topic}: {plain_text(error)}") from error


def storage_error(error: Exception, uri: str) -> PulsarLakeError:
    """Return a storage's or delta-rs's error as ours."""
    return UnavailableError(
        f"cannot read the table at {uri}: {plain_text(error)}",
        hint="check storage.uri and storage.options",
    )
