"""One TLS context a process, as long as its files stay as they are."""

import ssl
from pathlib import Path

import httpx
import pytest

from reader.config import PulsarConfig
from reader.errors import ConfigurationError
from reader.pulsar.admin import AdminClient
from reader.tls import client_context
from testbed.security import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def test_a_section_with_the_same_files_has_one_context(authority: Authority) -> None:
    trust = Path(authority.certificate)
    one = client_context("pulsar", trust=trust)
    assert client_context("pulsar", trust=trust) is one
    assert client_context("pulsar.bookkeeper", trust=trust) is not one, "httpx changes its own"
    assert client_context("pulsar", trust=trust, verify_hostname=False) is not one
    assert one.check_hostname
    assert client_context("pulsar") is client_context("pulsar") is not one


def test_all_that_a_process_uses_are_kept(authority: Authority) -> None:
    trust = Path(authority.certificate)
    rounds = [
        [client_context(f"section {number}", trust=trust) for number in range(3 * 16)]
        for _ in range(2)
    ]
    assert rounds[0] == rounds[1], "three sections of each of the settings that are kept"


def test_files_that_were_rotated_are_read_again(authority: Authority, tmp_path: Path) -> None:
    trust = tmp_path / "trust.pem"
    trust.write_bytes(Path(authority.certificate).read_bytes())
    one = client_context("pulsar", trust=trust)
    new = tmp_path / "new.pem"
    new.write_bytes(trust.read_bytes())
    new.rename(trust)
    assert client_context("pulsar", trust=trust) is not one
    trust.write_text("no certificate")
    with pytest.raises(ConfigurationError, match="cannot use the certificates"):
        client_context("pulsar", trust=trust)
    trust.unlink()
    with pytest.raises(ConfigurationError, match="No such file"):
        client_context("pulsar", trust=trust)


@pytest.mark.parametrize("proxy", ["", "https://127.0.0.1:1"])
def test_without_tls_no_context_is_made(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    def made(*args: object, **kwargs: object) -> ssl.SSLContext:
        raise AssertionError("authorities were loaded")

    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.setattr(ssl, "create_default_context", made)
    monkeypatch.setattr(httpx, "create_ssl_context", made)
    AdminClient(PulsarConfig(admin_url="http://127.0.0.1:1")).close()
