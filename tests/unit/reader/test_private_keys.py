"""Private keys out of files and of a command: producers choose the names that are asked for."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from functools import partial
from itertools import repeat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from reader.config import EncryptionConfig
from reader.decode import Decryption
from reader.errors import ConfigurationError, UnavailableError
from reader.key_command import KEY_NAME, KeyCommand
from reader.private_keys import check_keys, key_identity, open_decryption
from tests.unit.decode.entries import proto


def _metadata(*keys: str | bytes) -> bytes:
    """A MessageMetadata with encryption keys of these names."""
    names = [key.encode() if isinstance(key, str) else key for key in keys]
    return b"".join(proto([(13, proto([(1, name), (2, b"v")]))]) for name in names)


def _asked(config: EncryptionConfig, *keys: str | bytes, now: float = 6_000_000.0) -> bytes | str:
    """What becomes of an entry, read by a new task, which shares the process's answers."""
    decryption = open_decryption(config, "topic", clock=lambda: now)
    assert decryption is not None
    return decryption.decrypt(_metadata(*keys), b"x" * 32)


def _command(log: Path, then: str = "") -> list[str]:
    """A command that writes the names that it is asked for, and its arguments, to a file."""
    script = (
        f"import os, sys, time; name = sys.stdin.readline()[:-1];"
        f"open({str(log)!r}, 'a').write(' '.join([name, *sys.argv[1:]]) + '\\n');"
        f"sys.stderr.write('hvs.secret\\n');{then}"
    )
    return [sys.executable, "-S", "-c", script]


def test_a_commands_answer_is_kept_for_ten_minutes(tmp_path: Path) -> None:
    now = 6_000_000.0
    log = tmp_path / "asked"
    config = EncryptionConfig(command=_command(log))
    for key in ("a", "a", "b", "a"):
        assert _asked(config, key, now=now) == ""
    assert log.read_text().splitlines() == ["a", "b"], "nothing of it in the arguments"
    _asked(config, "a", now=now + 599)
    assert log.read_text().split() == ["a", "b"]
    _asked(config, "a", now=now + 600)
    assert log.read_text().split() == ["a", "b", "a"]


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
    log = tmp_path / "asked"
    found = _asked(EncryptionConfig(command=_command(log)), name)
    assert found == "encryption.command is not asked for such a name"
    assert not log.exists()
    with_files = EncryptionConfig(keys={"a": tmp_path / "none.pem"})
    assert _asked(with_files, name) == "", "and no file is read"


def test_names_that_fit() -> None:
    for name in ("orders-key", "k.v2", "0", "alice@example.com", "arn:aws:kms:1", "k" * 128):
        assert KEY_NAME.fullmatch(name)


@pytest.mark.parametrize(
    ("then", "reason"),
    [
        ("sys.exit(3)", "ended with exit code 3"),
        ("os.kill(os.getpid(), 9)", "ended with exit code -9"),
        ("print('x' * 1_000_000)", "printed more than a key"),
        ("print('no key')", "printed what is no private key"),
        ("time.sleep(600)", "did not answer in time"),
        ("os.close(1); time.sleep(600)", "did not answer in time"),
        ("os.fork() or time.sleep(600)", "did not answer in time"),
    ],
)
def test_a_command_that_fails_is_a_reason(tmp_path: Path, then: str, reason: str) -> None:
    """For the rows of that name, and for a minute; it tells nothing that stderr says."""
    log = tmp_path / "asked"

    def no_key(_: bytes) -> None:
        raise UnavailableError("encryption.command printed what is no private key")

    command = KeyCommand(_command(log, then), no_key, seconds=120.0 if "sleep" not in then else 0.5)
    now = 6_000_000.0
    began = time.monotonic()
    for later in (0, 59, 61):
        clock = repeat(now + later).__next__
        decryption = Decryption(partial(command.key, topic="topic", clock=clock))
        found = decryption.decrypt(_metadata("a"), b"x" * 32)
        assert found == f"encryption.command {reason}"
    assert time.monotonic() - began < 280, "the process is ended, and what it has started"
    assert log.exists() or "sleep" in then  # half a second may not start an interpreter


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    config = EncryptionConfig(command=[str(tmp_path / "no-such-program")])
    assert _asked(config, "a") == "encryption.command cannot be started"
    assert _asked(EncryptionConfig(command=["a\0b"]), "a") == "encryption.command cannot be started"
    with pytest.raises(ConfigurationError, match=r"encryption\.command is not a program"):
        check_keys(config)
    check_keys(EncryptionConfig(command=[sys.executable]))


def test_what_is_printed_is_a_key_or_not(tmp_path: Path) -> None:
    config = EncryptionConfig(command=_command(tmp_path / "asked", "print('-----BEGIN')"))
    assert _asked(config, "a") == "encryption.command printed what is no private key"


class Clock:
    """Stands still, but for ``answer``: what a command takes that is asked."""

    def __init__(self, answer: float = 0.0) -> None:
        self.now = 6_000_000.0
        self._answer = answer

    def __call__(self) -> float:
        return self.now

    def pass_(self, _: bytes = b"") -> None:
        self.now += self._answer


def _asks(command: KeyCommand, topic: str, clock: Clock, prefix: str) -> int:
    """How many made-up names a topic has asked for until it is refused one."""
    for number in range(10_000):
        try:
            command.key(f"{prefix}{number}", topic, clock)
        except UnavailableError as error:
            if "too many unknown names of this topic" in error.message:
                return number
    raise AssertionError("it is never refused one")


@pytest.mark.parametrize(("seconds", "names"), [(30.0, 5), (2.0, 75), (0.0, 1200)])
def test_made_up_names_cost_their_time_and_their_topic(seconds: float, names: int) -> None:
    """And no other; a process counts a tenth of a second at least."""
    clock = Clock(seconds)

    def no_key(_: bytes) -> None:
        clock.pass_()
        raise UnavailableError("none")

    program = ["echo", "x"] if seconds else ["a\0b"]
    command = KeyCommand(program, no_key)
    assert _asks(command, "hostile", clock, "a") == names
    assert _asks(command, "hostile", clock, "b") == 0
    assert _asks(command, "other", clock, "c") == names


def _new_key(path: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    path.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    )
    return path


def test_made_up_names_cost_the_same_where_any_name_has_a_key(tmp_path: Path) -> None:
    """The command ignores what it is asked for, or has a key for names that it does not know."""
    keys = {name: _new_key(tmp_path / f"{name}.pem") for name in ("good", "default", "later")}
    script = f"read -r name; echo of $name; cd {tmp_path}; cat $name.pem 2>&- || cat default.pem"
    clock = Clock(2.0)

    def identity(pem: bytes) -> object:
        clock.pass_()
        return key_identity(pem)

    command = KeyCommand(["sh", "-c", script], identity)
    good = command.key("good", "other", clock)
    assert _asks(command, "hostile", clock, "a") == 1 + 75, "the first is the default key's name"
    assert _asks(command, "hostile", clock, "b") == 0
    assert command.key("a9", "hostile", clock), "it is used, as far as it was asked for"
    keys["good"].unlink()
    assert command.key("good", "hostile", clock) == good
    assert command.key("later", "other", clock) == b"of later\n" + keys["later"].read_bytes()


def test_a_kept_key_does_not_wait_for_another_topics_names() -> None:
    asked, may_end = threading.Event(), threading.Event()

    def check(pem: bytes) -> None:
        if pem != b"good\n":
            asked.set()
            may_end.wait(60)

    command = KeyCommand(["cat"], check)
    assert command.key("good", "topic", time.monotonic) == b"good\n"
    other = threading.Thread(target=command.key, args=("a", "hostile", time.monotonic))
    other.start()
    found: list[bytes | None] = []
    kept = threading.Thread(
        target=lambda: found.append(command.key("good", "topic", time.monotonic))
    )
    try:
        assert asked.wait(60)
        kept.start()
        kept.join(50)
        assert found == [b"good\n"]
    finally:
        may_end.set()
        other.join()


def test_a_read_is_of_its_topic() -> None:
    config = EncryptionConfig(command=["a\0b", "of this test"])

    def reason(topic: str, name: str) -> bytes | str:
        decryption = open_decryption(config, topic, clock=lambda: 6_000_000.0)
        assert decryption is not None
        return decryption.decrypt(_metadata(*(f"{name}{n}" for n in range(8))), b"x" * 32)

    for number in range(150):
        assert reason("hostile", f"a{number}-") == "encryption.command cannot be started"
    denied = "encryption.command was asked for too many unknown names of this topic"
    assert reason("hostile", "b") == denied
    assert reason("other", "b") == "encryption.command cannot be started"


def test_a_topic_is_given_back_what_it_has_wasted() -> None:
    """A second in five: after an outage the next key is asked for soon, not in ten minutes."""
    clock = Clock(30.0)
    there = False

    def check(_: bytes) -> None:
        if not there:
            clock.pass_()
            raise UnavailableError("encryption.command did not answer in time")

    command = KeyCommand(["echo", "key"], check)
    assert _asks(command, "topic", clock, "a") == 5, "120 s, and 30 s that were given back"
    clock.now += 1
    assert _asks(command, "topic", clock, "b") == 1
    there = True
    clock.now += 119
    with pytest.raises(UnavailableError, match="too many unknown names"):
        command.key("good", "topic", clock)
    clock.now += 1
    assert command.key("good", "topic", clock) == b"key\n"


def test_a_name_that_had_a_key_is_asked_for_all_the_same() -> None:
    clock = Clock(30.0)
    keys = {b"good\n"}

    def check(pem: bytes) -> None:
        if pem not in keys:
            clock.pass_()
            raise UnavailableError("none")

    command = KeyCommand(["cat"], check)
    assert command.key("good", "topic", clock) == b"good\n"
    clock.now += 600
    assert _asks(command, "topic", clock, "a") == 5
    assert command.key("good", "topic", clock) == b"good\n"
    keys.clear()
    for _ in range(20):  # what it wastes in an outage is no producer's doing
        clock.now += 600
        with pytest.raises(UnavailableError, match="none"):
            command.key("good", "topic", clock)
    assert _asks(command, "topic", clock, "b") == 5


def test_one_entry_does_not_use_up_a_topics_time() -> None:
    clock = Clock(0.5)
    command = KeyCommand(["cat"], lambda pem: None if pem == b"mine\n" else clock.pass_())
    asked: list[str] = []

    def pem_of(name: str) -> bytes | None:
        asked.append(name)
        return command.key(name, "topic", clock) and None

    Decryption(pem_of).decrypt(_metadata(*(f"a{n}" for n in range(125))), b"x" * 32)
    assert len(asked) == 8
    assert command.key("mine", "topic", clock) == b"mine\n"


def test_a_process_that_cannot_be_ended_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs as another user: sudo. Neither it, nor many of it, hold up a topic."""
    left: list[int] = []

    def not_permitted(group: int, _: int) -> None:
        left.append(group)
        raise PermissionError(1, "Operation not permitted")

    command = KeyCommand(["sleep", "600"], lambda _: None, seconds=0.0)
    clock = Clock()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "killpg", not_permitted)
            for number in range(16):
                with pytest.raises(UnavailableError, match="did not answer in time"):
                    command.key(f"a{number}", "topic", clock)
            with pytest.raises(UnavailableError, match="nor can it be ended"):
                command.key("b", "topic", clock)
    finally:
        for one in left:
            os.killpg(one, signal.SIGKILL)
            os.waitid(os.P_PID, one, os.WEXITED | os.WNOWAIT)
    assert len(left) == 16
    with pytest.raises(UnavailableError, match="did not answer in time"):
        command.key("c", "topic", clock)


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
