"""OAuth2 client credentials: fetched once, renewed in time, and never shown."""

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reader.config import PulsarConfig
from reader.errors import ConfigurationError, PulsarLakeError, UnavailableError
from reader.pulsar.credentials import current_token
from testbed.security import TokenServer
from testbed.serving import answering, refusing_port

SECRET = "s3cr3t-of-the-client"


@pytest.fixture
def issuer() -> Iterator[TokenServer]:
    with TokenServer(b"key", {"lake": SECRET}) as server:
        yield server


def config(issuer: str, **more: Any) -> PulsarConfig:
    given = {"client_id": "lake", "client_secret": SECRET} | more
    return PulsarConfig.model_validate({"oauth2": {"issuer_url": issuer, **given}})


def test_a_token_is_fetched_once_and_shared(issuer: TokenServer) -> None:
    first = current_token(config(issuer.issuer))
    assert first is not None and first.count(".") == 2
    assert current_token(config(issuer.issuer)) == first
    assert len(issuer.asked) == 1
    assert current_token(config(issuer.issuer, audience="other")) is not None
    assert [form.get("audience") for form in issuer.asked] == [None, "other"]


def test_a_token_is_renewed_before_it_expires(issuer: TokenServer) -> None:
    issuer.seconds = 0.5
    for at, asked in ((100.0, 1), (100.44, 1), (100.46, 2)):  # 0.45 s: nine tenths of its life
        current_token(config(issuer.issuer), clock=partial(float, at))
        assert len(issuer.asked) == asked


def refused(settings: PulsarConfig) -> PulsarLakeError:
    with pytest.raises(PulsarLakeError) as error:
        current_token(settings)
    return error.value


def test_a_wrong_secret_is_refused_without_being_repeated(issuer: TokenServer) -> None:
    error = refused(config(issuer.issuer, client_secret="wr0ng-s3cr3t"))
    assert isinstance(error, ConfigurationError)
    assert "refuses the client lake: invalid_client" in str(error)
    assert "wr0ng-s3cr3t" not in f"{error!s}{error!r}{error.__cause__!r}"


def test_a_silent_issuer_is_unavailable() -> None:
    with refusing_port() as down:
        error = refused(config(f"http://127.0.0.1:{down}"))
    assert isinstance(error, UnavailableError)
    assert "no answer from the OAuth2 issuer" in str(error)


@pytest.mark.parametrize("to", ["http://xn--/", "mailto:x"])
def test_an_address_of_the_issuer_that_is_none(to: str) -> None:
    with answering(lambda asked: (302, None, {"Location": to})) as url:
        error = refused(config(url))
    assert isinstance(error, UnavailableError)
    assert "no answer from the OAuth2 issuer" in str(error)


@pytest.mark.parametrize("content", [f'{{"client_secret": "{SECRET}"', "[1]", '{"client_id": "x"}'])
def test_a_key_file_that_is_none(issuer: TokenServer, tmp_path: Path, content: str) -> None:
    path = tmp_path / "key.json"
    path.write_text(content)
    error = refused(config(issuer.issuer, client_id="", client_secret=None, key_file=path))
    assert str(path) in str(error)
    assert SECRET not in str(error)


def test_a_child_does_not_wait_for_a_thread_that_its_parent_has(issuer: TokenServer) -> None:
    current_token(config(issuer.issuer), clock=partial(float, 0.0))
    asked, forked = threading.Event(), threading.Event()

    def clock() -> float:
        asked.set()
        assert forked.wait(60)
        return 0.0

    with ThreadPoolExecutor(1) as pool:
        token = pool.submit(current_token, config(issuer.issuer), clock=clock)
        assert asked.wait(60)
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # ends it where it waits
            code = 1
            try:
                code = 0 if current_token(config(issuer.issuer), clock=partial(float, 0.0)) else 1
            finally:
                os._exit(code)
        forked.set()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert token.result()


def test_half_a_configuration_is_an_error() -> None:
    with pytest.raises(ValueError, match="client_id and client_secret, or key_file"):
        config("http://issuer", client_secret=None)
