"""No table is what a store says that answers for its bucket; all else is an error."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pydantic import ValidationError

from reader.config import StorageConfig
from reader.errors import ConfigurationError, UnavailableError
from reader.model import Topic
from reader.storage import open_storage
from reader.table import TopicTable
from testbed.serving import Asked, HttpAnswer, answering

TOPIC = Topic("public", "default", "orders")
EMPTY = '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></ListBucketResult>'


@contextmanager
def store(status: int, body: str) -> Iterator[str]:
    """The URL of one that answers every list so, and has no file."""

    def answer(asked: Asked) -> HttpAnswer:
        found = (status, body) if "list-type" in asked.target else (404, "")
        return *found, {"Content-Type": "application/xml"}

    with answering(answer) as url:
        yield url


def opened(status: int, body: str) -> TopicTable | None:
    with store(status, body) as url:
        return opened_at("s3://b/p", url)


def opened_at(uri: str, endpoint: str) -> TopicTable | None:
    options = {
        "endpoint_url": endpoint,
        "region": "us-east-1",
        "access_key_id": "a",
        "secret_access_key": "b",
        "allow_http": "true",
    }
    return TopicTable.open(open_storage(StorageConfig(uri=uri, options=options)), TOPIC)


def test_an_empty_bucket_has_no_table() -> None:
    assert opened(200, EMPTY) is None


@pytest.mark.parametrize(("status", "code"), [(404, "NoSuchBucket"), (403, "AccessDenied")])
def test_a_bucket_that_cannot_be_listed_is_an_error(status: int, code: str) -> None:
    with pytest.raises(UnavailableError, match="cannot read the table at s3://b/p"):
        opened(status, f"<Error><Code>{code}</Code><Message>no</Message></Error>")


def test_a_uri_that_delta_rs_cannot_parse_is_none_of_the_settings() -> None:
    """It calls that "no table": where the settings take one, an answer has to be the store's."""
    uris = [f"s3://a{chr(code)}b/p" for code in range(128)]
    uris += [f"s3://{host}/p" for host in ("a:1", "a:x", "a:99999", "[::1]", "[a", "u@a", "é", "")]
    taken = set()
    with store(403, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>") as url:
        for uri in (*uris, "s3:", "s3:/", "s3://", "s3:/a/p", "s3:a/p", "\1s3://a b/p"):
            try:
                found = opened_at(uri, url)
            except (ValidationError, ConfigurationError):
                pass
            except UnavailableError as error:
                assert "Could not parse" not in error.message
                taken.add(uri)
            else:
                pytest.fail(f"{uri!r}: {found}")
    assert {f"s3://a{one}b/p" for one in "xX0-_./"} < taken
