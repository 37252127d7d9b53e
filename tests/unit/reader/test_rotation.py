"""What is made of files that are rotated: anew when they change; the old one for how long."""

from pathlib import Path

import pytest

from reader.errors import ConfigurationError
from reader.rotation import Rotating


class Pair:
    """A certificate and its key, which match where their texts are equal; and a clock."""

    def __init__(self, folder: Path) -> None:
        self.certificate, self.key = folder / "certificate", folder / "key"
        self.now = 0.0
        self.made = 0
        self.broken = False
        self.rotate("one", "one")
        self.rotating = Rotating(self.make, self.certificate, self.key, None, clock=self.clock)

    def clock(self) -> float:
        return self.now

    def rotate(self, certificate: str | None = None, key: str | None = None) -> None:
        for path, text in ((self.certificate, certificate), (self.key, key)):
            if text is not None:
                new = path.with_suffix(".new")
                new.write_text(text)
                new.rename(path)

    def make(self) -> str:
        self.made += 1
        try:
            certificate, key = self.certificate.read_text(), self.key.read_text()
        except FileNotFoundError as error:
            raise ConfigurationError("missing", hint="which file") from error
        if certificate != key or self.broken:
            raise ConfigurationError("no match", hint="which files")
        return certificate


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def test_it_is_made_once_and_anew_when_a_file_has_changed(pair: Pair) -> None:
    assert [pair.rotating.current() for _ in range(3)] == ["one"] * 3
    pair.rotate("other", "other")
    assert [pair.rotating.current() for _ in range(3)] == ["other"] * 3
    assert pair.made == 2


def test_without_one_to_go_on_with_each_error_is_raised(pair: Pair) -> None:
    pair.rotate("other")
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="no match"):
            pair.rotating.current()
    pair.rotate("one")
    assert pair.rotating.current() == "one"


def test_while_files_do_not_match_the_last_is_used_for_a_minute(pair: Pair) -> None:
    assert pair.rotating.current() == "one"
    pair.rotate("other")
    for pair.now in (0.0, 30.0, 59.0):
        assert pair.rotating.current() == "one"
    assert pair.made == 2, "files that are the same are not read again"
    pair.rotate("third")
    assert pair.rotating.current() == "one"
    assert pair.made == 3
    pair.now = 60.0
    for _ in range(3):
        with pytest.raises(ConfigurationError, match="no match") as raised:
            pair.rotating.current()
        assert raised.value.hint == "which files"
    assert pair.made == 3, "a minute after the first failure, with the error of the last"
    pair.rotate(key="third")
    assert pair.rotating.current() == "third"
    pair.now = 200.0
    pair.rotate(key="fourth")
    assert pair.rotating.current() == "third", "another failure, another minute"


def test_while_a_file_is_missing_the_last_is_used_for_a_moment(pair: Pair) -> None:
    assert pair.rotating.current() == "one"
    pair.key.unlink()
    assert pair.rotating.current() == "one"
    pair.now = 0.9
    assert pair.rotating.current() == "one"
    pair.now = 1.0
    with pytest.raises(ConfigurationError, match="missing"):
        pair.rotating.current()
    pair.rotate(key="one")
    assert pair.rotating.current() == "one"


def test_the_moment_begins_when_the_file_is_missing(pair: Pair) -> None:
    assert pair.rotating.current() == "one"
    pair.rotate("other")
    assert pair.rotating.current() == "one"
    for pair.now in (30.0, 59.5):
        pair.key.unlink()
        assert pair.rotating.current() == "one"
        pair.rotate(key="one")
        assert pair.rotating.current() == "one"
    pair.key.unlink()
    assert pair.rotating.current() == "one"
    pair.now = 60.0
    with pytest.raises(ConfigurationError, match="missing"):
        pair.rotating.current()


def test_a_failure_that_the_files_are_not_to_blame_for_passes(pair: Pair) -> None:
    assert pair.rotating.current() == "one"
    pair.broken = True
    pair.rotate("other", "other")
    assert pair.rotating.current() == "one"
    pair.broken = False
    pair.now = 59.0
    assert pair.rotating.current() == "one"
    pair.now = 60.0
    assert pair.rotating.current() == "other"


def test_an_error_that_nobody_foresaw_is_not_remembered(pair: Pair) -> None:
    assert pair.rotating.current() == "one"
    pair.key.write_bytes(b"\xff")
    for _ in range(2):
        with pytest.raises(UnicodeDecodeError):
            pair.rotating.current()


def test_a_failure_of_long_ago_leaves_a_later_one_its_minute(pair: Pair) -> None:
    assert pair.rotating.current() == "one"
    pair.rotate("two")
    assert pair.rotating.current() == "one"
    pair.rotate(key="two")  # and nobody looks
    pair.now = 86_400.0
    pair.rotate("three")
    assert pair.rotating.current() == "one"
    pair.now += 60.0
    with pytest.raises(ConfigurationError, match="no match"):
        pair.rotating.current()


def test_a_failure_that_lasts_is_not_forgiven_because_nobody_asks(pair: Pair) -> None:
    assert pair.rotating.current() == "one"
    pair.rotate("two")
    assert pair.rotating.current() == "one"
    pair.now = 86_400.0
    with pytest.raises(ConfigurationError, match="no match"):
        pair.rotating.current()
