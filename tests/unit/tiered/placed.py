"""Objects in a directory, as the drivers write them there, read by the reader itself."""

import random
from pathlib import Path

from reader.config import TieredConfig
from reader.errors import PulsarLakeError
from reader.model import OffloadContext, Partition, Topic
from reader.tiered import TieredLedgers
from tests.unit.tiered.written_objects import jcloud_objects, map_file_objects

PARTITION = Partition(Topic.parse("a/b/c"), 2)
UUID = OffloadContext("4a1e9e0e-0000-0000-0000-000000000001")
JCLOUD, FILESYSTEM = "jcloud", "filesystem"
FORMATS = (JCLOUD, "NONE", "RECORD", "BLOCK")


def entries(count: int, size: int) -> list[bytes]:
    rng = random.Random(count)
    return [rng.randbytes(rng.randrange(1, size)) for _ in range(count)]


def put(
    root: Path, sent: list[bytes], form: str, *, ledger: int = 7, block_size: int = 20_000
) -> tuple[Path, Path]:
    """Writes a ledger as a driver does; the paths of its data and its index."""
    if form == JCLOUD:
        index, data = jcloud_objects(sent, block_size)
    else:
        data, index = map_file_objects(sent, form, block_size=block_size)
    return put_objects(root, form, data, index, ledger=ledger)


def put_objects(
    root: Path, form: str, data: bytes, index: bytes, *, ledger: int = 7
) -> tuple[Path, Path]:
    """The same of a ledger that was written already, and may be damaged."""
    if form == JCLOUD:
        name = f"{UUID.uuid}-ledger-{ledger}"
        paths = root / name, root / f"{name}-index"
    else:
        folder = root / "a/b/persistent/c-partition-2" / f"{ledger}-{UUID.uuid}"
        paths = folder / "data", folder / "index"
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    paths[0].write_bytes(data)
    paths[1].write_bytes(index)
    return paths


def place(root: Path, form: str, **more: object) -> TieredConfig:
    kind = JCLOUD if form == JCLOUD else FILESYSTEM
    return TieredConfig.model_validate({"uri": str(root), "format": kind, **more})


def read(ledgers: TieredLedgers, first: int, last: int, *, ledger: int = 7) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for block in ledgers.read(PARTITION, ledger, UUID, first, last):
        assert block.ledger_id == ledger
        for n, at, size in zip(
            block.entry_ids.tolist(), block.offsets.tolist(), block.lengths.tolist(), strict=True
        ):
            assert n not in found
            found[n] = block.arena[at : at + size].tobytes()
    return found


def outcome(root: Path, form: str, data: bytes, index: bytes, last: int) -> dict[int, bytes] | None:
    """What a read of the whole ledger gives, by the reader itself; None: an error."""
    put_objects(root, form, data, index)
    try:
        found = read(TieredLedgers([place(root, form)]), 0, last)
    except PulsarLakeError:
        return None
    assert list(found) == list(range(last + 1))
    return found
