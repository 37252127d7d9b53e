from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path

import pytest

from reader.config import load_config
from reader.errors import ConfigurationError


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith("PULSAR_LAKE__"):
            monkeypatch.delenv(name)


def write(path: Path, text: str) -> Path:
    file = path / "lake.toml"
    file.write_text(text)
    return file


def test_a_file_with_durations_and_sizes(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        '[storage]\nuri = "/x"\n[offload]\nmax_age = "90m"\nthreshold_bytes = "5MiB"\n',
    )
    config = load_config(file)
    assert config.offload.max_age == timedelta(minutes=90)
    assert config.offload.threshold_bytes == 5 << 20
    assert config.storage.uri == "/x"


def test_the_environment_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, '[pulsar]\nadmin_url = "http://file"\nservice_url = "pulsar://file"\n')
    monkeypatch.setenv("PULSAR_LAKE__PULSAR__ADMIN_URL", "http://env")
    monkeypatch.setenv("PULSAR_LAKE__OFFLOAD__TOPICS", '["a/b/*"]')
    config = load_config(file)
    assert config.pulsar.admin_url == "http://env"
    assert config.pulsar.service_url == "pulsar://file"
    assert config.offload.topics == ["a/b/*"]


def test_a_mapping_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSAR_LAKE__PULSAR__ADMIN_URL", "http://env")
    monkeypatch.setenv("PULSAR_LAKE__STORAGE__URI", "/env")
    config = load_config({"pulsar": {"admin_url": "http://code"}})
    assert config.pulsar.admin_url == "http://code"
    assert config.storage.uri == "/env"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"pulsar": {"servce_url": "x"}}, "did you mean service_url"),
        ({"nonsense": {}}, "unknown key nonsense"),
        ({"offload": {"interval": "soon"}}, "offload.interval"),
        ({"offload": {"source": "kafka"}}, "offload.source"),
        ({"http": {"address": "8787"}}, "http.address: 8787 is no address: write host:port"),
        ({"http": {"address": "host:70000"}}, "no address"),
        ({"http": {"address": "::1:8787"}}, "no address"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(settings: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_config(settings)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_missing_or_no_toml(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        load_config(tmp_path / "no.toml")
    with pytest.raises(ConfigurationError, match="not TOML"):
        load_config(write(tmp_path, "[pulsar\n"))


def test_secrets_do_not_show_and_survive_pickling(tmp_path: Path) -> None:
    config = load_config(
        {"pulsar": {"token": "s3cr3t"}, "storage": {"options": {"secret_access_key": "s3cr3t"}}}
    )
    assert "s3cr3t" not in repr(config)
    assert pickle.loads(pickle.dumps(config)).pulsar.auth_token() == "s3cr3t"
    token = tmp_path / "token"
    token.write_text("from-file\n")
    assert load_config({"pulsar": {"token_file": str(token)}}).pulsar.auth_token() == "from-file"


@pytest.mark.parametrize(
    ("address", "endpoint"),
    [
        ("127.0.0.1:8787", ("127.0.0.1", 8787)),
        ("[::1]:0", ("::1", 0)),
        ("lake.example:80", ("lake.example", 80)),
    ],
)
def test_where_the_page_is(address: str, endpoint: tuple[str, int]) -> None:
    found = load_config({"http": {"address": address}}).http
    assert found.enabled
    assert found.endpoint == endpoint


@pytest.mark.parametrize("address", ["", "off"])
def test_no_page(address: str) -> None:
    assert not load_config({"http": {"address": address}}).http.enabled


def test_the_pages_token(tmp_path: Path) -> None:
    assert load_config({}).http.secret() == ""
    assert load_config({"http": {"token": " x "}}).http.secret() == "x"
    missing = load_config({"http": {"token_file": str(tmp_path / "none")}}).http
    with pytest.raises(ConfigurationError, match=r"cannot read http\.token_file"):
        missing.secret()
