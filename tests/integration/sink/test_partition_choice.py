"""The partition of a key is the one that the Java client chooses."""

import random
from typing import Any

import pyarrow as pa
import pytest

from reader.encode import Hashing, base64_text, key_partitions
from reader.kernels.byte_spans import ByteSpans
from testbed.admin import Admin
from testbed.oracle import Oracle

PARTITIONS = 7


def keys() -> list[str]:
    draw = random.Random(5)
    alphabet = "abcXYZ019 -_/äöüß€漢字🔑🙈\u0000\u007f\uffff"
    made = ["".join(draw.choices(alphabet, k=draw.randrange(20))) for _ in range(300)]
    return ["", "a", "polygenelubricants", "🔑", "key-1", *made]


@pytest.mark.parametrize("hashing", list(Hashing))
def test_keys_that_are_text(
    admin: Admin, oracle: Oracle, topic_name: str, hashing: Hashing
) -> None:
    admin.create_topic(topic_name, PARTITIONS)
    texts = keys()
    messages = [{"value": "", "key": one} for one in texts]
    sent = oracle.write(topic_name, messages, hashing=str(hashing))
    spans = ByteSpans.of(pa.array(texts).cast(pa.large_binary()))
    assert key_partitions(spans, PARTITIONS, hashing).tolist() == [at[2] for at in sent]


@pytest.mark.parametrize("hashing", list(Hashing))
def test_keys_that_are_bytes(
    admin: Admin, oracle: Oracle, topic_name: str, hashing: Hashing
) -> None:
    """The text of their base64 decides."""
    admin.create_topic(topic_name, PARTITIONS)
    draw = random.Random(6)
    found = [draw.randbytes(draw.randrange(12)) for _ in range(200)]
    messages = [{"value": "", "key_bytes": one} for one in found]
    sent = oracle.write(topic_name, messages, hashing=str(hashing))
    texts = base64_text(ByteSpans.of(pa.array(found, pa.large_binary())))
    assert key_partitions(texts, PARTITIONS, hashing).tolist() == [at[2] for at in sent]


def test_the_python_client_has_a_hash_of_its_own(
    client: Any, admin: Admin, topic_name: str
) -> None:
    """That of C++ (``BoostHash``), which docs/writing.md says: its keys lie in other partitions."""
    admin.create_topic(topic_name, PARTITIONS)
    texts = [f"key-{number}" for number in range(50)]
    producer = client.create_producer(topic_name)
    sent = [producer.send(b"", partition_key=one).partition() for one in texts]
    producer.close()
    assert len(set(sent)) > 1
    spans = ByteSpans.of(pa.array(texts).cast(pa.large_binary()))
    for hashing in Hashing:
        assert key_partitions(spans, PARTITIONS, hashing).tolist() != sent
