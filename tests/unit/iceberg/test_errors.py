"""What catalogs' clients raise: an outage is one, and nothing else is taken for one."""

import pytest
import requests
from pyiceberg import exceptions
from sqlalchemy import exc

from offloader.iceberg.catalogs import catalog_errors
from reader import errors
from tests.support.steps import at_step, once
from tests.support.tables import TOPIC
from tests.unit.iceberg.worlds import World


def raised(error: Exception) -> errors.PulsarLakeError:
    with pytest.raises(errors.PulsarLakeError) as caught, catalog_errors("it", {}):
        raise error
    return caught.value


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError("reset"),
        TimeoutError("late"),
        requests.ConnectionError("refused"),
        requests.ReadTimeout("late"),
        requests.JSONDecodeError("an HTML page", "<html>", 0),
        exceptions.ServerError("500"),
        exceptions.ServiceUnavailableError("503"),
        exceptions.CommitStateUnknownException("502"),
        exceptions.TooManyRequestsError("429"),
        exc.OperationalError("SELECT 1", None, Exception("no connection")),
        exc.InterfaceError("SELECT 1", None, Exception("closed")),
        exc.TimeoutError("no connection is free"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_an_outage(error: Exception) -> None:
    assert type(raised(error)) is errors.UnavailableError


@pytest.mark.parametrize(
    "error",
    [
        PermissionError("not yours"),
        exceptions.UnauthorizedError("401"),
        exceptions.ForbiddenError("403"),
        exceptions.OAuthError("invalid_client"),
        exceptions.BadRequestError("400"),
        exceptions.RESTError("404: not a catalog"),
        exceptions.NoSuchPropertyException("uri"),
        exceptions.NotInstalledError("hive"),
        ModuleNotFoundError("psycopg2"),
        requests.exceptions.InvalidURL("http://"),
        exc.ProgrammingError("SELECT 1", None, Exception("permission denied for table")),
        exc.NoSuchModuleError("nosuch"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_only_the_user_can_put_right(error: Exception) -> None:
    found = raised(error)
    assert type(found) is errors.ConfigurationError
    assert found.hint


@pytest.mark.parametrize(
    "error",
    [
        exceptions.CommitFailedException("too late"),
        exceptions.NoSuchTableError("dropped meanwhile"),
        exceptions.TableAlreadyExistsError("made meanwhile"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_somebody_else_was_first(error: Exception) -> None:
    assert type(raised(error)) is errors.CommitConflictError


def test_a_file_that_is_gone() -> None:
    found = raised(FileNotFoundError("s3://b/snap-1.avro"))
    assert type(found) is errors.CorruptError
    assert "made again" in str(found)


@pytest.mark.parametrize(
    "error",
    [
        KeyError("x"),
        TypeError("x"),
        AssertionError("x"),
        ValueError("x"),
        exceptions.ResolveError("x"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_defect_says_what_it_is(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULSAR_LAKE_DEBUG", raising=False)
    found = raised(error)
    assert type(found) is errors.PulsarLakeError
    assert type(error).__name__ in str(found)
    assert "report it" in str(found)
    assert found.__cause__ is None
    monkeypatch.setenv("PULSAR_LAKE_DEBUG", "1")
    assert raised(error).__cause__ is error


def test_a_defect_in_the_middle_is_one_line_and_costs_nothing(world: World) -> None:
    def fail() -> None:
        raise KeyError("a defect")

    world.fill(1)
    with (
        pytest.raises(errors.PulsarLakeError, match="KeyError") as caught,
        at_step("iceberg-written", once(fail)),
    ):
        world.another().follow(TOPIC)
    assert type(caught.value) is errors.PulsarLakeError
    world.follow()
    world.check()
