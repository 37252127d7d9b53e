import pickle
import traceback
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from offloader.config import Config
from reader.config import ReadConfig
from reader.errors import ConfigurationError
from reader.pulsar.admin import AdminClient
from spark_ext.session.settings import LakeConfig

pytestmark = pytest.mark.usefixtures("no_environment")


def write(path: Path, text: str) -> Path:
    file = path / "lake.toml"
    file.write_text(text)
    return file


def test_a_file_with_durations_and_other_packages_sections(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        '[storage]\nuri = "/x"\n[pulsar]\ntimeout = "90m"\n'
        "[offload]\nwhatever = 1\n[http]\n[spark]\n",
    )
    config = ReadConfig.load(file)
    assert config.pulsar.timeout == timedelta(minutes=90)
    assert config.storage.uri == "/x"


def test_the_environment_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, '[pulsar]\nadmin_url = "http://file"\nservice_url = "pulsar://file"\n')
    monkeypatch.setenv("PULSAR_LAKE__PULSAR__ADMIN_URL", "http://env")
    monkeypatch.setenv("PULSAR_LAKE__PULSAR__NAMESPACES", '["a/b"]')
    monkeypatch.setenv("PULSAR_LAKE__OFFLOAD__TOPICS", "not for the reader")
    config = ReadConfig.load(file)
    assert config.pulsar.admin_url == "http://env"
    assert config.pulsar.service_url == "pulsar://file"
    assert config.pulsar.namespaces == ["a/b"]


def test_a_mapping_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSAR_LAKE__PULSAR__ADMIN_URL", "http://env")
    monkeypatch.setenv("PULSAR_LAKE__STORAGE__URI", "/env")
    config = ReadConfig.load({"pulsar": {"admin_url": "http://code"}})
    assert config.pulsar.admin_url == "http://code"
    assert config.storage.uri == "/env"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"pulsar": {"servce_url": "x"}}, "did you mean service_url"),
        ({"nonsense": {}}, "unknown key nonsense"),
        ({"qurey": {}}, "unknown key qurey (did you mean query?)"),
        ({"offlod": {}}, "unknown key offlod (did you mean offload?)"),
        ({"query": {"clock_skew": "soon"}}, "query.clock_skew"),
        ({"query": {"tail_entries": -1}}, "query.tail_entries"),
        ({"pulsar": "localhost"}, "pulsar: "),
    ],
)
def test_what_is_wrong_is_named_in_one_line(settings: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ReadConfig.load(settings)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "lake.toml"
    file.write_bytes(b'[pulsar]\ntoken = "s3cr3t\xff"')
    with pytest.raises(ConfigurationError, match="byte 24 is not UTF-8") as caught:
        ReadConfig.load(file)
    assert caught.value.__cause__ is None


def test_files_that_are_missing_or_no_toml(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        ReadConfig.load(tmp_path / "no.toml")
    with pytest.raises(ConfigurationError, match="not TOML"):
        ReadConfig.load(write(tmp_path, "[pulsar\n"))


def test_secrets_do_not_show_and_survive_pickling(tmp_path: Path) -> None:
    config = ReadConfig.load(
        {"pulsar": {"token": "s3cr3t"}, "storage": {"options": {"secret_access_key": "s3cr3t"}}}
    )
    assert "s3cr3t" not in repr(config)
    assert pickle.loads(pickle.dumps(config)).pulsar.auth_token() == "s3cr3t"
    token = tmp_path / "token"
    token.write_text("from-file\n")
    assert (
        ReadConfig.load({"pulsar": {"token_file": str(token)}}).pulsar.auth_token() == "from-file"
    )


def test_a_secret_that_is_no_text_is_named_and_not_shown(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_bytes(b"hunter2\xff")
    settings = ReadConfig.load({"pulsar": {"token_file": str(token)}}).pulsar
    with pytest.raises(ConfigurationError, match=r"pulsar\.token_file: it is not UTF-8") as raised:
        settings.auth_token()
    assert raised.value.__cause__ is None
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("end", ["", "\n", "\r\n", " \n\n"])
def test_a_token_is_one_line(tmp_path: Path, end: str) -> None:
    token = tmp_path / "token"
    token.write_bytes(f"the.token-_=\n{end}".encode())
    for given in ({"token_file": str(token)}, {"token": f"the.token-_={end}"}):
        assert ReadConfig.load({"pulsar": given}).pulsar.auth_token() == "the.token-_="


@pytest.mark.parametrize("text", ["s3cr3t\ns3cr3t", "s3cr3t\rX: y", "s3cr3t x", "s3cr3té", "s3\0t"])
def test_a_token_that_no_header_can_have_is_not_shown(tmp_path: Path, text: str) -> None:
    token = tmp_path / "token"
    token.write_bytes(text.encode())
    for given in ({"token_file": str(token)}, {"token": text}):
        settings = ReadConfig.load({"pulsar": given}).pulsar
        with AdminClient(settings) as admin:
            with pytest.raises(ConfigurationError, match=r"pulsar\.token") as caught:
                admin.tenants()
        assert "s3" not in shown(caught.value).replace(str(tmp_path), "")


_URLS = ("admin_url", "service_url", "issuer_url")
_USER, _SCHEME = "must not have a user", "a URL has to begin with"
_PASSWORD, _NO_URL = "must not have a password", r"storage\.uri: neither a path nor a URL"


@pytest.mark.parametrize(
    ("name", "url", "says"),
    [
        ("admin_url", "http://user:s3cr3t@host:8080", _USER),
        ("service_url", "pulsar://s3cr3t@host:6650/", _USER),
        ("issuer_url", "https://u:s3cr3t@host", _USER),
        ("admin_url", "http://user:s3/cr3t@host:8080", _USER),
        ("service_url", "pulsar://user:/s3cr3t@host:6650", _USER),
        ("service_url", "pulsar://host:6650,user:1/s3cr3t@host:6650", _USER),
        ("issuer_url", "https://u:s3?cr3t@host", _USER),
        ("endpoint_url", "http://user:s3cr3t@host:9000", _USER),
        ("endpoint_url", "user:s3cr3t@host", _USER),
        *((name, "user:s3cr3t@host:8080", _SCHEME) for name in _URLS),
        *((name, "s3cr3t", _SCHEME) for name in _URLS),
        *((name, "http:s3cr3t", _SCHEME) for name in _URLS),
        *((name, "//s3cr3t", _SCHEME) for name in _URLS),
        ("uri", "ftp://user:s3cr3t@host/lake", _PASSWORD),
        ("uri", "s3://KEY:s3/cr3t@bucket/lake", _PASSWORD),
        ("uri", "s3://KEY:1/s3cr3t@bucket/lake", _PASSWORD),
        ("uri", "user:s3cr3t@bucket/lake", _PASSWORD),
        ("uri", "USER_1:s3/cr3t@bucket/lake", _PASSWORD),
        ("uri", "s3:user:s3cr3t@bucket/lake", _PASSWORD),
        ("uri", "s3:/bucket/p", _NO_URL),
        ("uri", "s3:bucket/p", _NO_URL),
        ("uri", "s3://my bucket/p", _NO_URL),
        ("uri", "s3://bucket:abc/p", _NO_URL),
        ("uri", "s3://bucket:65536/p", _NO_URL),
        ("uri", "s3://[bucket/p", _NO_URL),
        ("uri", "s3://a^b/p", _NO_URL),
        ("uri", "abfss://box@account.example/p?sig=s3cr3t", _NO_URL),
        ("uri", "s3://bucket/p#s3cr3t", _NO_URL),
        ("uri", "file:p", _NO_URL),
    ],
)
def test_a_url_that_is_refused_is_not_shown(name: str, url: str, says: str) -> None:
    options = {"endpoint_url": url, "secret_access_key": "a@b:c"}
    settings: dict[str, dict[str, object]] = {
        "issuer_url": {"pulsar": {"oauth2": {"issuer_url": url, "key_file": "/x"}}},
        "endpoint_url": {"storage": {"uri": "s3://bucket/x", "options": options}},
        "uri": {"storage": {"uri": url}},
    }
    with pytest.raises(ConfigurationError, match=says) as caught:
        ReadConfig.load(settings.get(name, {"pulsar": {name: url}}))
    assert (url if says == _NO_URL else "cr3t") not in shown(caught.value)


def test_urls_that_may_be() -> None:
    assert ReadConfig.load({"pulsar": {"admin_url": "http://host/a@b"}})
    assert not ReadConfig.load({"pulsar": {"oauth2": {"issuer_url": ""}}}).pulsar.oauth2.configured


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "/a:b@c?d#e",
        "./a:b@c",
        "lake",
        "lake dir/2024",
        "file:/data/lake",
        "file:///data/my lake",
        "hdfs://user@host:8020/lake",
        "hdfs:///lake",
        "hdfs://[::1]:8020/lake",
        "abfss://$box@account/lake",
        "S3A://bu_cket.x-1/a b/c@d",
        "memory://lake",
    ],
)
def test_where_a_storage_may_be(uri: str) -> None:
    assert ReadConfig.load({"storage": {"uri": uri}}).storage.uri == uri


def test_settings_of_spark_and_of_the_storage_do_not_show() -> None:
    config = LakeConfig.load(
        {
            "spark": {"conf": {"spark.x.password": "s3cr3t"}},
            "storage": {"options": {"secret_access_key": "s3cr3t"}},
        }
    )
    for one in (config, config.spark, config.storage):
        assert "s3cr3t" not in f"{one}{one!r}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PULSAR_LAKE__PULSAR__NAMESPACES", "s3cr3t/b"),
        ("PULSAR_LAKE__PULSAR", "s3cr3t"),
        ("PULSAR_LAKE__STORAGE__OPTIONS", "{s3cr3t"),
    ],
)
@pytest.mark.parametrize("from_file", [True, False])
def test_a_variable_that_is_not_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, from_file: bool
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=f"the value of {name} is not JSON") as caught:
        ReadConfig.load(write(tmp_path, "[storage]\n") if from_file else None)
    assert "s3cr3t" not in shown(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"pulsar": {"token": ["s3cr3t"]}},
        {"pulsar": {"tokn": "s3cr3t"}},
        {"pulsar": "s3cr3t"},
        {"pulsar": {"oauth2": {"issuer_url": "http://i", "client_secret": "s3cr3t"}}},
        {"storage": {"options": {"secret_access_key": {"s": "s3cr3t"}}}},
        {"s3cr3ts": "s3cr3t"},
    ],
)
def test_no_error_shows_what_was_set(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ReadConfig.load(settings)
    assert "s3cr3t" not in shown(caught.value).replace("s3cr3ts", "")


def shown(error: BaseException) -> str:
    """As an error is printed, with its causes, and what these have kept."""
    text = "".join(traceback.format_exception(error, limit=0))
    for cause in (error.__cause__, error if error.__suppress_context__ else error.__context__):
        if isinstance(cause, ValidationError):
            text += str(cause.errors())
    return text


def test_options_of_toml_s_own_kinds_are_the_text_that_they_mean(tmp_path: Path) -> None:
    text = "\n".join(
        f"{section}\n{more}options = {{ allow_http = true, anonymous = false, number = 5 }}"
        for section, more in (
            ("[storage]", ""),
            ("[[tiered]]", 'uri = "s3://b"\n'),
            ("[iceberg]", ""),
        )
    )
    config = Config.load(write(tmp_path, text))
    for one in (config.storage, config.tiered[0], config.tiered[0].storage, config.iceberg):
        assert one.options == {"allow_http": "true", "anonymous": "false", "number": "5"}
    spark = LakeConfig.load(write(tmp_path, '[spark.conf]\n"spark.a" = true\n"spark.b" = 5')).spark
    assert spark.conf == {"spark.a": "true", "spark.b": "5"}
    for wrong in ("1.5", "[1]", "{ a = 1 }", "2026-01-01"):
        with pytest.raises(ConfigurationError, match=r"storage\.options\.a"):
            Config.load(write(tmp_path, f"[storage.options]\na = {wrong}"))
