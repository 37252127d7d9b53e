"""Private keys of files and of a function: producers choose the names that are asked for."""

import os
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import ModuleType

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from reader.config import EncryptionConfig
from reader.decode import Decryption
from reader.errors import ConfigurationError, UnavailableError
from reader.key_provider import KEY_NAME, KeyProvider
from reader.private_keys import check_keys, key_identity, open_decryption
from tests.unit.decode.entries import proto

_numbers = count()


def _raise(error: Exception) -> Callable[[str], object]:
    """Return a function that raises the error."""

    def function(_: str) -> object:
        raise error

    return function


def _metadata(*keys: str | bytes) -> bytes:
    """A MessageMetadata with encryption keys of these names."""
    names = [key.encode() if isinstance(key, str) else key for key in keys]
    return b"".join(proto([(13, proto([(1, name), (2, b"v")]))]) for name in names)


def _asked(config: EncryptionConfig, *keys: str | bytes, now: float = 6_000_000.0) -> bytes | str:
    """What becomes of an entry, read by a new task, which shares the process's answers."""
    decryption = open_decryption(config, "topic", clock=lambda: now)
    assert decryption is not None
    return decryption.decrypt(_metadata(*keys), b"x" * 32)


def _recorder(asked: list[str], answer: Callable[[str], object] = lambda _: None) -> str:
    """Return the path of a new provider, which appends the names that it is called with."""

    def function(name: str) -> object:
        asked.append(name)
        return answer(name)

    path = f"provider_{next(_numbers)}"  # answers are kept by path
    module = ModuleType(path)
    module.private_key = function  # type: ignore[attr-defined]
    sys.modules[path] = module
    return f"{path}:private_key"


def test_an_answer_is_kept_for_ten_minutes() -> None:
    now = 6_000_000.0
    asked: list[str] = []
    config = EncryptionConfig(key_provider=_recorder(asked))
    for key in ("a", "a", "b", "a"):
        assert _asked(config, key, now=now) == ""
    assert asked == ["a", "b"]
    _asked(config, "a", now=now + 599)
    assert asked == ["a", "b"]
    _asked(config, "a", now=now + 600)
    assert asked == ["a", "b", "a"]


@pytest.mark.parametrize(
    "name",
    [
        "-address=https://evil.example",
        "--help",
        "",
        "../../etc/shadow",
        "/etc/shadow",
        "a/b",
        "a\0b",
        "a\nb",
        "a b",
        "$(id)",
        "ключ",
        b"\xff",
        "k" * 129,
        "k" * 200_000,
        "@file",
        ".",
    ],
)
def test_a_name_that_is_not_asked_for(tmp_path: Path, name: str | bytes) -> None:
    asked: list[str] = []
    found = _asked(EncryptionConfig(key_provider=_recorder(asked)), name)
    assert found == "encryption.key_provider is not called for such a name"
    assert not asked
    with_files = EncryptionConfig(keys={"a": tmp_path / "none.pem"})
    assert _asked(with_files, name) == "", "and no file is read"


def test_names_that_fit() -> None:
    for name in ("orders-key", "k.v2", "0", "alice@example.com", "arn:aws:kms:1", "k" * 128):
        assert KEY_NAME.fullmatch(name)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (_raise(PermissionError("hvs.secret")), "raised PermissionError"),
        (lambda _: "-----BEGIN", "returned neither bytes nor None"),
        (lambda _: b"-----BEGIN", "returned no private key"),
        (lambda _: b"x" * 1_000_000, "returned no private key"),
    ],
)
def test_a_provider_that_fails_is_a_reason(answer: Callable[[str], object], reason: str) -> None:
    """For the rows of that name, and for a minute; it tells nothing of the error's text."""
    asked: list[str] = []
    config = EncryptionConfig(key_provider=_recorder(asked, answer))
    now = 6_000_000.0
    for later in (0, 59, 61):
        assert _asked(config, "a", now=now + later) == f"encryption.key_provider {reason}"
    assert asked == ["a", "a"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("no_such_module:private_key", "No module named 'no_such_module'"),
        ("os:no_such_function", "no_such_function"),
        ("a b", "invalid format"),
        ("os:sep", "is no function"),
        ("broken_provider:private_key", "RuntimeError"),
        ("misread_provider:private_key", "ValueError"),
        ("misnamed_provider:private_key", "AttributeError"),
    ],
)
def test_a_provider_that_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, reason: str
) -> None:
    """It is an error before anything is read, and of whatever process needs it."""
    for name, line in (
        ("broken", "raise RuntimeError('hvs.secret')"),
        ("misread", "int('hvs.secret')"),
        ("misnamed", "getattr(object, 'hvs.secret')"),
    ):
        (tmp_path / f"{name}_provider.py").write_text(line)
    monkeypatch.syspath_prepend(tmp_path)
    config = EncryptionConfig(key_provider=path)
    for need in (lambda: check_keys(config), lambda: _asked(config, "a")):
        with pytest.raises(ConfigurationError, match=r"encryption\.key_provider") as caught:
            need()
        assert reason in str(caught.value)
        assert "package.module:function" in str(caught.value)
        assert "secret" not in str(caught.value)
    check_keys(EncryptionConfig(key_provider=_recorder([])))


class Clock:
    """Stands still except in ``pass_``: the seconds that a call takes."""

    def __init__(self, answer: float = 0.0) -> None:
        self.now = 6_000_000.0
        self._answer = answer

    def __call__(self) -> float:
        return self.now

    def pass_(self, _: object = None) -> None:
        self.now += self._answer


def _same(pem: bytes) -> bytes:
    """Identify a key by its bytes."""
    return pem


def _asks(provider: KeyProvider, topic: str, clock: Clock, prefix: str) -> int:
    """Return how many made-up names a topic can ask for before it is refused one."""
    for number in range(10_000):
        try:
            provider.key(f"{prefix}{number}", topic, clock)
        except UnavailableError as error:
            if "too many unknown names of this topic" in error.message:
                return number
    raise AssertionError("it is never refused one")


@pytest.mark.parametrize(("seconds", "names"), [(30.0, 5), (2.0, 75), (0.0, 1200)])
def test_made_up_names_cost_their_time_and_their_topic(seconds: float, names: int) -> None:
    """And no other; a call counts a tenth of a second at least."""
    clock = Clock(seconds)

    def no_key(_: str) -> bytes:
        clock.pass_()
        raise KeyError

    provider = KeyProvider(no_key, _same)
    assert _asks(provider, "hostile", clock, "a") == names
    assert _asks(provider, "hostile", clock, "b") == 0
    assert _asks(provider, "other", clock, "c") == names


def _new_key() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def test_made_up_names_cost_the_same_where_any_name_has_a_key() -> None:
    """The function ignores its argument, or has a key for names that it does not know."""
    keys = {name: _new_key() for name in ("good", "default", "later")}
    clock = Clock(2.0)

    def key(name: str) -> bytes:
        clock.pass_()
        return b"of %s\n" % name.encode() + keys.get(name, keys["default"])

    provider = KeyProvider(key, key_identity)
    good = provider.key("good", "other", clock)
    assert _asks(provider, "hostile", clock, "a") == 1 + 75, "the first is the default key's name"
    assert _asks(provider, "hostile", clock, "b") == 0
    assert provider.key("a9", "hostile", clock), "it is used, as far as it was asked for"
    del keys["good"]
    assert provider.key("good", "hostile", clock) == good
    assert provider.key("later", "other", clock) == b"of later\n" + keys["later"]


def test_a_kept_key_does_not_wait_for_another_topics_names() -> None:
    asked, may_end = threading.Event(), threading.Event()

    def key(name: str) -> bytes:
        if name != "good":
            asked.set()
            may_end.wait(60)
        return name.encode()

    provider = KeyProvider(key, _same)
    assert provider.key("good", "topic", time.monotonic) == b"good"
    other = threading.Thread(target=provider.key, args=("a", "hostile", time.monotonic))
    other.start()
    found: list[bytes | None] = []
    kept = threading.Thread(
        target=lambda: found.append(provider.key("good", "topic", time.monotonic))
    )
    try:
        assert asked.wait(60)
        kept.start()
        kept.join(50)
        assert found == [b"good"]
    finally:
        may_end.set()
        other.join()


def test_a_read_is_of_its_topic() -> None:
    config = EncryptionConfig(key_provider=_recorder([], _raise(KeyError())))

    def reason(topic: str, name: str) -> bytes | str:
        decryption = open_decryption(config, topic, clock=lambda: 6_000_000.0)
        assert decryption is not None
        return decryption.decrypt(_metadata(*(f"{name}{n}" for n in range(8))), b"x" * 32)

    for number in range(150):
        assert reason("hostile", f"a{number}-") == "encryption.key_provider raised KeyError"
    denied = "encryption.key_provider was called for too many unknown names of this topic"
    assert reason("hostile", "b") == denied
    assert reason("other", "b") == "encryption.key_provider raised KeyError"


def test_a_topic_is_given_back_what_it_has_wasted() -> None:
    """A second in five: after an outage the next key is asked for soon, not in ten minutes."""
    clock = Clock(30.0)
    there = False

    def key(_: str) -> bytes:
        if not there:
            clock.pass_()
            raise TimeoutError
        return b"key"

    provider = KeyProvider(key, _same)
    assert _asks(provider, "topic", clock, "a") == 5, "120 s, and 30 s that were given back"
    clock.now += 1
    assert _asks(provider, "topic", clock, "b") == 1
    there = True
    clock.now += 119
    with pytest.raises(UnavailableError, match="too many unknown names"):
        provider.key("good", "topic", clock)
    clock.now += 1
    assert provider.key("good", "topic", clock) == b"key"


def test_a_name_that_had_a_key_is_asked_for_all_the_same() -> None:
    clock = Clock(30.0)
    keys = {"good": b"good"}

    def key(name: str) -> bytes:
        if name not in keys:
            clock.pass_()
        return keys[name]

    provider = KeyProvider(key, _same)
    assert provider.key("good", "topic", clock) == b"good"
    clock.now += 600
    assert _asks(provider, "topic", clock, "a") == 5
    assert provider.key("good", "topic", clock) == b"good"
    keys.clear()
    for _ in range(20):  # what it wastes in an outage is no producer's doing
        clock.now += 600
        with pytest.raises(UnavailableError, match="KeyError"):
            provider.key("good", "topic", clock)
    assert _asks(provider, "topic", clock, "b") == 5


def test_one_entry_does_not_use_up_a_topics_time() -> None:
    clock = Clock(0.5)
    provider = KeyProvider(lambda name: b"mine" if name == "mine" else clock.pass_(), _same)
    asked: list[str] = []

    def pem_of(name: str) -> bytes | None:
        asked.append(name)
        return provider.key(name, "topic", clock) and None

    Decryption(pem_of).decrypt(_metadata(*(f"a{n}" for n in range(125))), b"x" * 32)
    assert len(asked) == 8
    assert provider.key("mine", "topic", clock) == b"mine"


def test_an_entry_names_so_many_keys() -> None:
    asked: list[str] = []
    decryption = Decryption(lambda name: asked.append(name), first=["k127", "k128"])
    more = "it names more than 8 keys"
    assert decryption.decrypt(_metadata(*(f"k{n}" for n in range(10_000))), b"x" * 32) == more
    assert asked == ["k127", *(f"k{n}" for n in range(7))], "files cost nothing: they come first"
    assert decryption.decrypt(_metadata(*(f"k{n}" for n in range(8))), b"x" * 32) == ""

    def away(_: str) -> None:
        raise UnavailableError("the vault is away")

    found = Decryption(away).decrypt(_metadata(*(f"k{n}" for n in range(9))), b"x" * 32)
    assert found == f"the vault is away; {more}"


def test_key_files(tmp_path: Path) -> None:
    assert open_decryption(EncryptionConfig(), "topic") is None
    (tmp_path / "a.pem").write_text("any")
    check_keys(EncryptionConfig(keys={"a": tmp_path / "a.pem"}))
    with pytest.raises(ConfigurationError, match="cannot read the private key 'b': No such file"):
        check_keys(EncryptionConfig(keys={"b": tmp_path / "b.pem"}))
    with pytest.raises(ConfigurationError, match="the private key 'a' cannot be used"):
        _asked(EncryptionConfig(keys={"a": tmp_path / "a.pem"}), os.fsencode("a"))
