"""Ledgers of Pulsar's tiered storage, read from a server of each kind: objects made by hand."""

from collections.abc import Iterable

import numpy as np
import pytest

from reader.config import StorageConfig, TieredConfig
from reader.errors import CorruptError, NotFoundError
from reader.model import EntryBlock
from reader.storage import Storage
from reader.tiered import TieredLedgers
from reader.tiered.object_names import ObjectNames, filesystem_names, jcloud_names
from tests.unit.tiered.placed import JCLOUD, PARTITION, UUID
from tests.unit.tiered.written_objects import jcloud_objects, map_file_objects

pytestmark = [pytest.mark.long, pytest.mark.parametrize("form", [JCLOUD, "NONE", "BLOCK"])]

# Of several windows, and not all of one byte, which BLOCK would make small.
SENT = [np.arange(n * 31, n * 31 + 50_000, dtype=">u4").tobytes() for n in range(100)]


def put(storage: Storage, form: str) -> ObjectNames:
    if form == JCLOUD:
        names, (index, data) = jcloud_names(7, UUID), jcloud_objects(SENT, 10 << 20)
    else:
        names = filesystem_names(PARTITION, 7, UUID)
        data, index = map_file_objects(SENT, form, block_size=1 << 20)
    storage.objects().put(names.data, data)
    storage.objects().put(names.index, index)
    return names


def ledgers(config: StorageConfig, form: str) -> TieredLedgers:
    place = {"uri": config.uri, "options": config.options}
    kind = JCLOUD if form == JCLOUD else "filesystem"
    return TieredLedgers([TieredConfig.model_validate({**place, "format": kind})])


def entries(blocks: Iterable[EntryBlock]) -> dict[int, bytes]:
    return {
        int(number): one.arena[offset : offset + length].tobytes()
        for one in blocks
        for number, offset, length in zip(one.entry_ids, one.offsets, one.lengths, strict=True)
    }


def test_ranges(storage: Storage, config: StorageConfig, form: str) -> None:
    put(storage, form)
    opened = ledgers(config, form)
    for first, last in ((0, 99), (99, 99), (70, 90), (71, 71), (0, 0)):
        expected = {n: SENT[n] for n in range(first, last + 1)}
        assert entries(opened.read(PARTITION, 7, UUID, first, last)) == expected


def test_an_object_that_is_deleted_while_it_is_read(
    storage: Storage, config: StorageConfig, form: str
) -> None:
    """All of it, where the store still gives it to who has opened it, or an error that says so."""
    for _ in range(2):
        names = put(storage, form)
        blocks = ledgers(config, form).read(PARTITION, 7, UUID, 0, 99)
        found = entries([next(blocks)])
        storage.objects().delete([names.data, names.index])
        try:
            found |= entries(blocks)
        except NotFoundError as error:
            assert "is not there" in error.message
        else:
            assert found == dict(enumerate(SENT))
        with pytest.raises(NotFoundError):
            entries(ledgers(config, form).read(PARTITION, 7, UUID, 0, 0))


def test_an_object_that_is_cut_off(storage: Storage, config: StorageConfig, form: str) -> None:
    names = put(storage, form)
    data = storage.objects().get(names.data) or b""
    storage.objects().put(names.data, data[:-3])
    with pytest.raises(CorruptError):
        entries(ledgers(config, form).read(PARTITION, 7, UUID, 0, 99))
