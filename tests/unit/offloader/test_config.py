"""The offloader's sections, and all settings of one file together."""

from datetime import timedelta
from pathlib import Path

import pytest

from offloader.config import Config, load_config
from reader.config import ReadConfig
from reader.config.loading import SECTIONS
from reader.errors import ConfigurationError
from spark_ext.session.settings import LakeConfig
from tests.unit.reader.test_config import shown, write

pytestmark = pytest.mark.usefixtures("no_environment")


def test_every_section_is_known_by_name_to_those_that_do_not_read_it() -> None:
    assert set(SECTIONS) == set(Config.model_fields)


def test_a_file_with_durations_and_sizes(tmp_path: Path) -> None:
    file = write(
        tmp_path, '[storage]\nuri = "/x"\n[offload]\nmax_age = "90m"\nthreshold_bytes = "5MiB"\n'
    )
    config = load_config(file)
    assert config.offload.max_age == timedelta(minutes=90)
    assert config.offload.threshold_bytes == 5 << 20
    assert config.storage.uri == "/x"


def test_the_environment_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, '[offload]\nsubscription = "file"\n')
    monkeypatch.setenv("PULSAR_LAKE__OFFLOAD__TOPICS", '["a/b/*"]')
    monkeypatch.setenv("PULSAR_LAKE__HTTP__TOKEN", "t" * 16)
    config = load_config(file)
    assert config.offload.subscription == "file"
    assert config.offload.topics == ["a/b/*"]
    assert config.http.secret() == "t" * 16


def test_others_load_their_part_of_it() -> None:
    config = load_config({"storage": {"uri": "/x"}, "spark": {"master": "local[1]"}, "offload": {}})
    lake = LakeConfig.load(config)
    assert type(lake) is LakeConfig
    assert (lake.storage.uri, lake.spark.master) == ("/x", "local[1]")
    assert lake == LakeConfig.load({"storage": {"uri": "/x"}, "spark": {"master": "local[1]"}})
    assert ReadConfig.load(lake) == ReadConfig.load(config)
    assert load_config(config) is config


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"offload": {"interval": "soon"}}, "offload.interval"),
        ({"offload": {"source": "kafka"}}, "offload.source"),
        ({"offload": {"override": [{"topics": "a/b/c", "max_ag": "1h"}]}}, "did you mean max_age?"),
        ({"offlaod": {}}, "did you mean offload?"),
        ({"http": {"address": "8787"}}, "http.address: no address: write host:port, or off"),
        ({"http": {"address": "host:70000"}}, "no address"),
        ({"http": {"address": "::1:8787"}}, "no address"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(settings: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_config(settings)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"http": {"address": "s3cr3t"}}, "http.address: no address"),
        ({"offload": {"override": [{"topics": "s3cr3t"}]}}, "override.0.topics: no pattern"),
        ({"offload": {"source": "s3cr3t"}}, "offload.source"),
        ({"offload": {"max_age": "s3cr3t"}}, "offload.max_age"),
        ({"offload": {"threshold_bytes": "s3cr3t"}}, "offload.threshold_bytes"),
    ],
)
def test_no_error_shows_what_was_set(settings: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_config(settings)
    assert says in str(caught.value)
    assert "s3cr3t" not in shown(caught.value)


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
    long, short = "sixteen letters.", "fifteen letters"
    assert load_config({"http": {"token": f" {long} "}}).http.secret() == long
    assert load_config({"http": {"token": ""}}).http.secret() == ""
    with pytest.raises(ConfigurationError, match="16 characters") as raised:
        load_config({"http": {"token": short}})
    assert short not in str(raised.value)
    file = tmp_path / "token"
    file.write_text(short)
    with pytest.raises(ConfigurationError, match=r"http\.token_file: a token needs 16 characters"):
        load_config({"http": {"token_file": str(file)}}).http.secret()
    missing = load_config({"http": {"token_file": str(tmp_path / "none")}}).http
    with pytest.raises(ConfigurationError, match=r"cannot read http\.token_file"):
        missing.secret()
