"""What a write may be told: each option, values that are none, names that are nearly one."""

from typing import Any

import pytest

from reader.encode import Compression, EntryFormat, Hashing
from reader.errors import ConfigurationError
from reader.model import Topic
from reader.sink import Delivery, SinkOptions


def test_what_holds_without_options() -> None:
    found = SinkOptions.of({})
    assert found == SinkOptions()
    assert found.topic is None
    assert found.delivery is Delivery.EXACTLY_ONCE
    assert (found.app, found.version) == (None, None)
    assert found.compression is Compression.LZ4
    assert found.hashing is Hashing.JAVA_STRING_HASH
    assert (found.batch_messages, found.batch_bytes) == (1000, 1 << 20)
    assert found.encryption_keys == ()
    assert not found.merge_schema
    assert found.enable_deduplication
    assert found.entry_format(5 << 20, b"v") == EntryFormat(schema_version=b"v")


@pytest.mark.parametrize(
    ("name", "value", "field", "expected"),
    [
        ("topic", "t/n/x", "topic", Topic("t", "n", "x")),
        ("topic", "persistent://t/n/x", "topic", Topic("t", "n", "x")),
        ("delivery", "at-least-once", "delivery", Delivery.AT_LEAST_ONCE),
        ("delivery", "exactly-once", "delivery", Delivery.EXACTLY_ONCE),
        *(("compression", one.name, "compression", one) for one in Compression),
        *(("compression", one.name.lower(), "compression", one) for one in Compression),
        ("hashingScheme", "Murmur3_32Hash", "hashing", Hashing.MURMUR3_32_HASH),
        ("hashingScheme", "murmur3_32hash", "hashing", Hashing.MURMUR3_32_HASH),
        ("hashingScheme", "JavaStringHash", "hashing", Hashing.JAVA_STRING_HASH),
        ("batchingMaxMessages", "1", "batch_messages", 1),
        ("BATCHINGMAXMESSAGES", "1000000", "batch_messages", 1_000_000),
        ("batchingmaxbytes", "65536", "batch_bytes", 65_536),
        ("encryptionKeys", "a", "encryption_keys", ("a",)),
        ("encryptionKeys", " a , b,, ", "encryption_keys", ("a", "b")),
        ("encryptionKeys", "", "encryption_keys", ()),
        ("mergeSchema", "false", "merge_schema", False),
        ("enableDeduplication", "false", "enable_deduplication", False),
    ],
)
def test_each_option(name: str, value: str, field: str, expected: Any) -> None:
    assert getattr(SinkOptions.of({name: value}), field) == expected


def test_the_name_of_a_write() -> None:
    found = SinkOptions.of({"txnAppId": "nightly", "txnVersion": "7"})
    assert (found.app, found.version) == ("nightly", 7)


def test_schemas_that_grow() -> None:
    assert SinkOptions.of({"mergeSchema": "true", "topic": "t/n/x"}).merge_schema
    with pytest.raises(ConfigurationError, match="mergeSchema goes with option topic") as caught:
        SinkOptions.of({"mergeSchema": "true"})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("options", [{"txnAppId": "a"}, {"txnVersion": "1"}])
def test_half_a_name(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="txnAppId and txnVersion go together"):
        SinkOptions.of(options)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("topic", "a/b", "is not a topic name"),
        ("delivery", "twice", "option delivery: not one of its values"),
        ("compression", "gzip", "option compression: not one of its values"),
        ("compression", "", "option compression: not one of its values"),
        ("hashingScheme", "md5", "option hashingScheme: not one of its values"),
        ("batchingMaxMessages", "0", "option batchingMaxMessages: "),
        ("batchingMaxMessages", "-1", "option batchingMaxMessages: "),
        ("batchingMaxMessages", "1000001", "option batchingMaxMessages: "),
        ("batchingMaxMessages", "many", "option batchingMaxMessages: "),
        ("batchingMaxBytes", "0", "option batchingMaxBytes: "),
        ("batchingMaxBytes", "1.5", "option batchingMaxBytes: "),
        ("mergeSchema", "perhaps", "option mergeSchema: "),
        ("enableDeduplication", "", "option enableDeduplication: "),
    ],
)
def test_values_that_are_none(name: str, value: str, text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        SinkOptions.of({name: value})
    assert caught.value.message.startswith(text) or text in caught.value.message
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("app", "version"), [("", "1"), ("a" * 201, "1"), ("a", "-1"), ("a", "x")])
def test_names_that_are_none(app: str, version: str) -> None:
    with pytest.raises(ConfigurationError, match=r"option txn(AppId|Version): "):
        SinkOptions.of({"txnAppId": app, "txnVersion": version})
    with pytest.raises(ConfigurationError, match="option txnVersion: "):
        SinkOptions.of({"txnAppId": "a", "txnVersion": str(1 << 62)})


def test_what_one_of_its_values_are() -> None:
    with pytest.raises(ConfigurationError) as caught:
        SinkOptions.of({"compression": "brotli"})
    assert caught.value.hint == "one of none, lz4, zlib, zstd, snappy"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("batchMaxMessages", "batchingMaxMessages"),
        ("batchingmaxmessage", "batchingMaxMessages"),
        ("compresion", "compression"),
        ("COMPRESION", "compression"),
        ("txnAppID_", "txnAppId"),
        ("hashing", "hashingScheme"),
        ("encryptionkey", "encryptionKeys"),
    ],
)
def test_names_that_are_nearly_one(name: str, near: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        SinkOptions.of({name: "x"})
    assert caught.value.message == f"a write to Pulsar has no option {name}"
    assert caught.value.hint == f"did you mean {near}?"


def test_a_name_that_is_none() -> None:
    with pytest.raises(ConfigurationError) as caught:
        SinkOptions.of({"zzz": "x"})
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("one of topic, delivery, txnAppId, txnVersion, ")


def test_options_of_spark_are_none_of_ours() -> None:
    options = {"checkpointLocation": "/x", "queryName": "q", "path": "p", "config": "c"}
    assert SinkOptions.of(options) == SinkOptions()
