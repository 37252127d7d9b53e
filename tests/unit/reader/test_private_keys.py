"""Private keys out of files and of a command, whose answers are kept for ten minutes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reader.config import EncryptionConfig
from reader.errors import ConfigurationError
from reader.private_keys import check_keys, open_decryption


def _metadata(key: str) -> bytes:
    """A MessageMetadata with an encryption key of this name."""
    name = key.encode()
    field = b"\x0a" + bytes([len(name)]) + name + b"\x12\x01v"
    return b"\x6a" + bytes([len(field)]) + field


def _counting(log: Path, code: int = 0) -> list[str]:
    """A command that has no key, and writes the names that it is asked for to a file."""
    script = (
        f"import sys; open({str(log)!r}, 'a').write(sys.argv[1] + '\\n');"
        f"sys.stderr.write('no such vault\\n'); sys.exit({code})"
    )
    return [sys.executable, "-c", script]


def test_a_commands_answer_is_kept_for_ten_minutes(tmp_path: Path) -> None:
    now = 6_000_000.0
    config = EncryptionConfig(command=_counting(tmp_path / "asked"))

    def ask(key: str) -> None:
        # Each decryption is one of a new task, which shares the process's answers.
        decryption = open_decryption(config, clock=lambda: now)
        assert decryption is not None
        assert decryption.decrypt(_metadata(key), b"x" * 32) is None

    for key in ("a", "a", "b", "a"):
        ask(key)
    assert (tmp_path / "asked").read_text().split() == ["a", "b"]
    now += 599.0
    ask("a")
    assert (tmp_path / "asked").read_text().split() == ["a", "b"]
    now += 1.0
    ask("a")
    assert (tmp_path / "asked").read_text().split() == ["a", "b", "a"]


def test_a_command_that_fails_is_an_error(tmp_path: Path) -> None:
    decryption = open_decryption(EncryptionConfig(command=_counting(tmp_path / "asked", 3)))
    assert decryption is not None
    with pytest.raises(
        ConfigurationError, match=r"failed for the key 'a' \(exit code 3\)"
    ) as found:
        decryption.decrypt(_metadata("a"), b"x" * 32)
    assert found.value.hint == "no such vault"
    missing = open_decryption(EncryptionConfig(command=[str(tmp_path / "no-such-program")]))
    assert missing is not None
    with pytest.raises(ConfigurationError, match=r"encryption\.command cannot be run"):
        missing.decrypt(_metadata("a"), b"x" * 32)


def test_key_files(tmp_path: Path) -> None:
    assert open_decryption(EncryptionConfig()) is None
    (tmp_path / "a.pem").write_text("any")
    check_keys(EncryptionConfig(keys={"a": tmp_path / "a.pem"}))
    with pytest.raises(ConfigurationError, match="cannot read the private key 'b': No such file"):
        check_keys(EncryptionConfig(keys={"b": tmp_path / "b.pem"}))
