"""Encrypted messages by both clients, with keys that the readers have, and with others."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pulsar

from testbed.oracle import Json
from testbed.publish import publish
from tests.contract.corpus import Kind, Place
from tests.contract.java import body, bytes_of, context_of, raw_value
from tests.contract.kinds import SOME
from tests.contract.rows import Row

KEY_KINDS = ("RSA", "ECDSA")


def _unknown(to: Place) -> Iterator[None]:
    """Without the key the Java client gives an entry as it is stored, and so does each tier.

    No chunks: with them the Java client lost its connection, again and again.
    """
    for kind in KEY_KINDS:
        keys = {"unknown": to.oracle.make_keys(kind)[0], "two": to.oracle.make_keys("RSA")[0]}
        messages: list[Json] = [
            {"value": b"secret %d" % n * 20, "key": f"k{n}", "event_time": 5} for n in range(4)
        ]
        to.write(messages, encryption=keys)
        to.write(messages, encryption=keys, batch=3, compression="ZSTD")
        to.write([{"value": b"open"}])
        if kind == KEY_KINDS[0]:
            _by_pulsar_client(to)
            yield


def _by_pulsar_client(to: Place) -> None:
    """Four single messages, and two batches of two. It knows RSA keys in files."""
    with TemporaryDirectory() as folder:
        public, private = (Path(folder, name) for name in ("public.pem", "private.pem"))
        for path, pem in zip((public, private), to.oracle.make_keys("RSA"), strict=True):
            path.write_text(pem)
        keys = pulsar.CryptoKeyReader(str(public), str(private))
        for batch, compression in ((0, "NONE"), (2, "LZ4")):
            publish(
                to.client,
                to.topic,
                [b"secret %d" % n * 20 for n in range(4)],
                batch=batch,
                compression=compression,
                encryption_key="unknown",
                crypto_key_reader=keys,
            )


def _as_stored(message: Json) -> Row:
    if message["encryption"] is None:
        return raw_value(message)
    assert message["encrypted"]
    return {
        "value": None,
        "__rescued": bytes_of(message["data"]),
        "__kind": "encrypted",
        "__error": SOME,
        "__encryptionContext": context_of(message),
    }


_SMALL: list[Json] = [
    {"value": b"secret %d" % n * 20, "key": f"k{n}", "event_time": 5, "properties": {"a": "b"}}
    for n in range(4)
]
_SMALL += [{"value": b""}, {"value": None, "key": "gone"}]
_COUNT = 2 * len(_SMALL) + 2 + 2


def _known(to: Place) -> Iterator[None]:
    """Single messages, batches, chunks and transactions; a key of each kind."""
    unknown, _ = to.oracle.make_keys("RSA")
    for kind in KEY_KINDS:
        keys = {kind: to.public[kind], "two": unknown}
        to.write(_SMALL, encryption=keys)
        to.write(_SMALL, batch=3, compression="ZSTD", encryption=keys)
        to.write([{"value": body(9_000)}], chunk_size=2_000, encryption=keys)
        to.write([{"value": b"open"}])
        kept, dropped = to.oracle.begin(), to.oracle.begin()
        to.write(_SMALL[:2], transaction=kept, encryption=keys)
        to.write(_SMALL[2:4], transaction=dropped, batch=2, encryption=keys)
        to.oracle.commit(kept)
        to.oracle.abort(dropped)
        if kind == KEY_KINDS[0]:
            yield


def _decrypted(message: Json) -> Row:
    """All that the Java client tells: no metadata of a message in a batch."""
    context = context_of(message)
    if context is not None:
        assert not message["encrypted"]
        del context["metadata"]
        context["keys"].sort(key=lambda key: key["name"])
    return {**raw_value(message), "__encryptionContext": context}


WITH_KNOWN_KEYS = [
    Kind("encrypted", 2 * _COUNT, _known, _decrypted, config="keyed", halves=True),
    Kind("encrypted-stored", 2 * _COUNT, _known, _decrypted, config="stored", halves=True),
]

KINDS = [
    Kind("encrypted-unknown", 14 + 6, _unknown, _as_stored, halves=True, twice=True),
    *WITH_KNOWN_KEYS,
]
