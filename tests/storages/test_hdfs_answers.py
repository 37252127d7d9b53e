"""HDFS renames, and nobody hears of it: whoever asked finds out what became of it."""

from collections.abc import Iterator
from typing import Any

import pytest

from offloader.commit.delta_committer import DeltaCommitter
from reader.clients import Clients
from reader.config import ReadConfig, StorageConfig
from reader.errors import UnavailableError
from reader.model import Partition, Topic
from reader.pulsar import NO_LOG, AdminClient
from reader.sink import NamedWrite, StagedFile
from reader.sink.staged_entries import Run, ShownSchema
from reader.storage import Storage, open_storage
from testbed.proxy import TcpProxy
from tests.support.additions import addition, ledgers_in, open_table

pytestmark = [pytest.mark.long, pytest.mark.parametrize("server", ["hdfs"], indirect=True)]

RENAME = b"rename2"  # the method's name in a call of Hadoop's RPC
TOPIC = Topic("public", "default", "orders")
PARTITION = Partition(TOPIC, 0)
TIMES = pytest.mark.parametrize("times", [1, 3])


@pytest.fixture
def proxy(server: Any) -> Iterator[TcpProxy]:
    with TcpProxy(server.address) as proxied:
        yield proxied


@pytest.fixture
def faulty(storage: Storage, server: Any, proxy: TcpProxy) -> Storage:
    """The same place, where answers get lost."""
    uri = storage.config.uri.replace(server.address, proxy.address)
    return open_storage(StorageConfig(uri=uri, options=storage.config.options))


@TIMES
def test_a_put_if_absent(storage: Storage, faulty: Storage, proxy: TcpProxy, times: int) -> None:
    proxy.lose_answers(RENAME, times)
    try:
        won = faulty.objects().put_if_absent("a/1", b"ours")
    except UnavailableError:
        won = False
    assert proxy.lost >= 1
    assert won or storage.objects().get("a/1") == b"ours"
    assert not storage.objects().put_if_absent("a/1", b"theirs")
    assert not faulty.objects().put_if_absent("a/1", b"theirs")
    assert [one.path for one in storage.objects().below("a")] == ["a/1"]


@TIMES
def test_a_file(storage: Storage, faulty: Storage, proxy: TcpProxy, times: int) -> None:
    """It is there whole, whatever its writer was told."""
    filesystem, root = faulty.filesystem()
    proxy.lose_answers(RENAME, times)
    sink = filesystem.open_output_stream(f"{root}/a/file")
    sink.write(bytes(3 << 20))
    try:
        sink.close()
    except OSError as error:
        assert str(error)
    assert proxy.lost >= 1
    assert [(one.path, one.size) for one in storage.objects().below("a")] == [("a/file", 3 << 20)]


@TIMES
def test_a_decision(
    faulty: Storage, proxy: TcpProxy, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AdminClient, "log_end", lambda self, partition: NO_LOG)
    settings = ReadConfig.load({"storage": faulty.config.model_dump()})
    topic = "persistent://t/n/x"
    staged = [StagedFile("", b"x", {topic: [Run(0, 1, 1)]}, 1, {topic: ShownSchema(None, b"")})]
    with Clients(settings) as clients:
        proxy.lose_answers(RENAME, times)
        decided = NamedWrite(clients, "app").decide(0, staged, encrypted=False)
        assert proxy.lost >= 1
        assert decided is not None
        assert decided[1]
        proxy.resume()
        assert NamedWrite(clients, "app").decide(0, staged, encrypted=False) == (decided[0], False)


@TIMES
def test_a_commit(storage: Storage, faulty: Storage, proxy: TcpProxy, times: int) -> None:
    DeltaCommitter(storage).commit(None, addition(storage, TOPIC, [1]))
    pending = addition(faulty, TOPIC, [2], before=1)
    faulty.require_exclusive_put()  # has renames of its own
    proxy.lose_answers(RENAME, times)
    table = DeltaCommitter(faulty).commit(open_table(faulty, TOPIC), pending)
    assert proxy.lost >= 1
    assert table.watermark(PARTITION) == 2
    assert table.version == open_table(storage, TOPIC).version
    assert [one.ledger for one in open_table(storage, TOPIC).ledgers()] == [1, 2]
    assert ledgers_in(storage, TOPIC) == {(0, 1): 10, (0, 2): 10}


def test_the_first_commit(storage: Storage, faulty: Storage, proxy: TcpProxy) -> None:
    faulty.require_exclusive_put()
    proxy.lose_answers(RENAME, 2)
    DeltaCommitter(faulty).commit(None, addition(storage, TOPIC, [1, 2]))
    assert proxy.lost == 2
    assert ledgers_in(storage, TOPIC) == {(0, 1): 10, (0, 2): 10}
    assert open_table(storage, TOPIC).version == 1
