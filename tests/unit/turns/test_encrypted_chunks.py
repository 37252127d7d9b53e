"""Chunked messages of which some chunks are opened and some are not: all of them stay somewhere."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from offloader.config import load_config
from offloader.turn import conversion_step
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.decode import Decryption
from reader.model import Topic
from reader.plan import EncryptedRead, take_snapshot
from reader.sources import RowFormat
from reader.sources.encrypted import read_encrypted
from tests.unit.decode.entries import broker
from tests.unit.decode.test_decryption import RSA, for_rsa, pem, sealed_entry
from tests.unit.turns.pulsar_world import HOUR, NEVER, START, World, chunk, kinds

STRAY = "chunked message with chunks missing"
SEALED = "encrypted"

Found = list[tuple[int, str | None, list[int]]]
"""Entry, error, and the chunks whose plaintext is in the row."""


@pytest.fixture
def plaintext(world: World, tmp_path: Path) -> World:
    """A table of plaintext, for what the key "mine" opens."""
    return use_keys(world, tmp_path, {"mine"}, store_plaintext=True)


def use_keys(world: World, directory: Path, names: set[str], *, store_plaintext: bool) -> World:
    file = directory / "private.pem"
    file.write_bytes(pem(RSA))
    file.chmod(0o600)
    settings = world.config.model_dump(mode="json", include={"storage", "query", "offload"})
    settings["pulsar"] = {"admin_url": world.config.pulsar.admin_url, "cluster": "c"}
    settings["encryption"] = {
        "keys": {name: str(file) for name in names},
        "store_plaintext": store_plaintext,
    }
    world.config = load_config(settings)
    world.clients = Clients(world.config, admin=world.admin)
    return world


def sent(keys: Sequence[str | None], of: int, first: int = 0) -> list[bytes]:
    """A message's chunks from ``first`` on, each encrypted for one key or, None, not at all."""
    return [
        chunk("p", number, of)
        if key is None
        else sealed_entry(
            f"p{number} ".encode(),
            {key: for_rsa()},
            uuid="p",
            num_chunks_from_msg=of,
            chunk_id=number,
            total_chunk_msg_size=3 * of,
            publish_time=START,
        )
        for number, key in enumerate(keys, first)
    ]


def found(world: World) -> Found:
    names = ["__entryId", "__error", "value", "__rescued"]
    return chunks_of(row for batch in world.table().batches(names) for row in batch.to_pylist())


def chunks_of(rows: Iterator[dict[str, Any]]) -> Found:
    found = []
    for row in rows:
        data = (row["value"] or b"") + (row["__rescued"] or b"")
        chunks = [number for number in range(9) if b"p%d " % number in data]
        found.append((row["__entryId"], row["__error"], chunks))
    return sorted(found, key=lambda one: (one[0], one[1] or ""))


def encrypted(world: World) -> EncryptedRead:
    """All encrypted entries of the newest version of the table."""
    return EncryptedRead(world.partition, world.table().version)


def decrypted(world: World, *names: str) -> Found:
    """What a query with these keys makes of the table's ciphertext, also by a walk too long."""
    snapshot = take_snapshot(world.clients, world.topic)
    form = RowFormat(snapshot.fields, snapshot.schemas, snapshot.columns)
    keys = Decryption({name: pem(RSA) for name in names}.get)

    def read() -> Found:
        with patch.object(world.clients, "decryption", lambda topic: keys):
            batches = [*read_encrypted(world.clients, encrypted(world), form)]
        return chunks_of(row for batch in batches for row in batch.to_pylist())

    found = read()
    with patch("reader.sources.lookback.MOST_PASSED", 0):
        assert read() == found
    return found


@pytest.mark.parametrize(
    ("keys", "of", "rows"),
    [
        (["mine", "mine"], 2, [(1, None, [0, 1])]),
        (["mine", "mine", "new"], 3, [(2, STRAY, [0, 1])]),
        (["mine", "new"], 2, [(1, STRAY, [0])]),
        (["mine", "new", "mine", "new"], 4, [(1, SEALED, []), (3, STRAY, [0, 2])]),
        (["new", "new"], 2, [(0, SEALED, []), (1, SEALED, [])]),
        ([None, "new"], 2, [(1, STRAY, [0])]),
    ],
)
def test_a_message_that_ends_in_ciphertext(
    plaintext: World, keys: list[str | None], of: int, rows: Found
) -> None:
    plaintext.seal(*sent(keys, of))
    expected = [(entry, error) for _, entry, _, error in plaintext.hot()]
    offloader = plaintext.offloader()
    offloader.turn(plaintext.topic, now=True)
    assert found(plaintext) == rows
    assert [(entry, error) for entry, error, _ in rows] == expected


@pytest.mark.parametrize("offloads", [1, 2])
def test_in_several_ledgers(plaintext: World, offloads: int) -> None:
    offloader = plaintext.offloader()
    plaintext.seal(*sent(["mine"], 3))
    if offloads > 1:
        offloader.turn(plaintext.topic, now=True)
    plaintext.seal(*sent(["mine", "new"], 3, first=1))
    assert kinds(plaintext.hot()) == [(11, 1, STRAY)]
    offloader.turn(plaintext.topic, now=True)
    assert found(plaintext) == [(1, STRAY, [0, 1])]


def test_a_chunk_that_does_not_fit(plaintext: World) -> None:
    plaintext.seal(*sent(["mine"], 3), *sent(["new"], 3, first=2))
    plaintext.offloader().turn(plaintext.topic, now=True)
    assert found(plaintext) == [(1, STRAY, [0])]


@pytest.mark.parametrize(
    ("keys", "rows"),
    [
        (["mine", "mine"], [(1, NEVER, [0, 1])]),
        (["mine", "new"], [(0, NEVER, [0]), (1, SEALED, [])]),
        (["mine", "new", "mine", "new"], [(1, SEALED, []), (2, NEVER, [0, 2]), (3, SEALED, [])]),
        (["new", "new"], [(0, SEALED, []), (1, SEALED, [])]),
        ([None, "new"], [(0, NEVER, [0]), (1, SEALED, [])]),
    ],
)
def test_giving_up(plaintext: World, keys: list[str | None], rows: Found) -> None:
    plaintext.seal(*sent(keys, 5))
    offloader = plaintext.offloader()
    offloader.turn(plaintext.topic, now=True)
    plaintext.now += 2 * HOUR
    for _ in range(2):
        offloader.turn(plaintext.topic)
    assert found(plaintext) == rows
    assert plaintext.held.ledger == 11


def test_a_query_of_ciphertext_that_was_given_up(world: World, offloader: TopicOffloader) -> None:
    """Each chunk is in exactly one of the rows that a query shows of its own. Before, whoever has
    both keys waits for the rest of the message."""
    world.seal(*sent(["mine", "new"], 5))
    offloader.turn(world.topic, now=True)
    assert decrypted(world, "mine", "new") == []
    world.now += 2 * HOUR
    for _ in range(2):
        offloader.turn(world.topic)
    assert decrypted(world) == [(0, SEALED, []), (1, SEALED, [])]
    assert decrypted(world, "mine") == [(0, NEVER, [0]), (1, SEALED, [])]
    assert decrypted(world, "new") == [(0, SEALED, []), (1, NEVER, [1])]
    assert decrypted(world, "mine", "new") == [(1, NEVER, [0, 1])]


def test_a_query_of_ciphertext_gives_what_bookies_give(world: World, tmp_path: Path) -> None:
    """With each set of keys; the offloader has all of them, and stores ciphertext."""
    world.seal(*sent(["mine", "mine", "new"], 3))
    hot = {}
    for names in ((), ("mine",), ("new",), ("mine", "new")):
        use_keys(world, tmp_path, set(names), store_plaintext=False)
        hot[names] = [(entry, error) for _, entry, _, error in world.hot()]
    world.offloader().turn(world.topic, now=True)
    for names, rows in hot.items():
        assert [(entry, error) for entry, error, _ in decrypted(world, *names)] == rows


def test_a_key_that_is_gone_at_the_next_commit(plaintext: World, tmp_path: Path) -> None:
    """What was opened at the first is ciphertext then; whoever has the key reads it all."""
    plaintext.seal(*sent(["mine", "other"], 4))
    plaintext.offloader().turn(plaintext.topic, now=True)
    assert found(plaintext) == [(1, SEALED, [])]
    use_keys(plaintext, tmp_path, {"none"}, store_plaintext=True)
    plaintext.seal(*sent(["mine", "mine"], 4, first=2))
    plaintext.offloader().turn(plaintext.topic, now=True)
    assert found(plaintext) == [(0, SEALED, []), (0, SEALED, []), (1, SEALED, []), (1, SEALED, [])]
    assert decrypted(plaintext, "mine", "other") == [(1, None, [0, 1, 2, 3])]


@pytest.mark.parametrize("restarted", [True, False])
def test_a_key_that_is_gone_when_a_message_is_given_up(
    plaintext: World, tmp_path: Path, restarted: bool
) -> None:
    offloader = plaintext.offloader()
    plaintext.seal(*sent(["mine", "other", "mine"], 5))
    offloader.turn(plaintext.topic, now=True)
    use_keys(plaintext, tmp_path, {"none"}, store_plaintext=True)
    offloader = plaintext.offloader() if restarted else offloader
    plaintext.now += 2 * HOUR
    for _ in range(2):
        offloader.turn(plaintext.topic)
    if restarted:
        assert found(plaintext) == [(0, SEALED, []), (1, SEALED, []), (2, SEALED, [])]
        assert decrypted(plaintext, "mine", "other") == [(2, NEVER, [0, 1, 2])]
    else:
        assert found(plaintext) == [(1, SEALED, []), (2, NEVER, [0, 2])]


def test_a_key_that_comes_before_a_message_is_given_up(plaintext: World, tmp_path: Path) -> None:
    """No second row of an entry."""
    plaintext.seal(*sent(["new", "new"], 5))
    plaintext.offloader().turn(plaintext.topic, now=True)
    use_keys(plaintext, tmp_path, {"new"}, store_plaintext=True)
    offloader = plaintext.offloader()
    plaintext.now += 2 * HOUR
    for _ in range(2):
        offloader.turn(plaintext.topic)
    assert found(plaintext) == [(0, SEALED, []), (1, SEALED, [])]


@pytest.mark.parametrize("last", ["none", "mine"])
def test_tasks_of_one_commit_that_are_given_other_keys(
    plaintext: World, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    """``encryption.key_provider`` fails for the second, or for the first."""
    tasks = iter([{"mine", "none"} - {last}, {last}])

    def decryption(topic: Topic) -> Decryption:
        return Decryption({name: pem(RSA) for name in next(tasks, ())}.get)

    monkeypatch.setattr(plaintext.clients, "decryption", decryption)
    monkeypatch.setattr(conversion_step, "plan_packs", lambda splits, size: [(s,) for s in splits])
    plaintext.seal(*sent(["mine", "mine"], 3))
    plaintext.seal(*sent(["mine"], 3, first=2))
    plaintext.offloader().turn(plaintext.topic, now=True)
    if last == "none":
        assert found(plaintext) == [(0, SEALED, []), (0, SEALED, []), (1, SEALED, [])]
        assert decrypted(plaintext, "mine") == [(0, None, [0, 1, 2])]
    else:
        assert found(plaintext) == [(0, None, [0, 1, 2]), (0, SEALED, []), (1, SEALED, [])]


def test_ciphertext_of_a_broker_of_another_time(world: World, tmp_path: Path) -> None:
    """A broker's time beyond the year 9999 is in no column, and ciphertext keeps no other."""
    use_keys(world, tmp_path, {"mine"}, store_plaintext=False)
    head = broker(timestamp=START * 1000, index=4)
    world.seal(sealed_entry(b"x", {"mine": for_rsa()}, head=head, publish_time=START))
    world.offloader().turn(world.topic, now=True)
    snapshot = take_snapshot(world.clients, world.topic)
    form = RowFormat(snapshot.fields, snapshot.schemas, snapshot.columns)
    keys = Decryption({"mine": pem(RSA)}.get)
    with patch.object(world.clients, "decryption", lambda topic: keys):
        [batch] = read_encrypted(world.clients, encrypted(world), form)
    times = batch.column("__brokerPublishTime").cast(pa.int64()).to_pylist()
    assert (times, batch.column("__error").to_pylist()) == ([None], [None])
