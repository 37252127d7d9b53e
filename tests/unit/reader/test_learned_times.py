"""A filter of a scan skips sealed ledgers by the publish times that an earlier read has learned."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from reader.scan import TopicReader
from tests.unit.decode.entries import entry
from tests.unit.turns.pulsar_world import HOUR, START, World

published = pc.field("__publishTime")


def at(hours: int) -> pa.Scalar:
    return pa.scalar(datetime.fromtimestamp((START + hours * HOUR) / 1000, UTC))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Sealed ledgers 10, 11 and 12 have messages of the hours 0, 2 and 1 to 4; 13 is open."""
    with World(tmp_path) as found:
        for hours in ((0, 0), (2, 2), (4, 1)):
            found.seal(*(entry(b"%d" % one, publish_time=START + one * HOUR) for one in hours))
        found.write(entry(b"9", publish_time=START + 9 * HOUR))
        yield found


def values(world: World, where: pc.Expression | None) -> tuple[list[int], set[int]]:
    """The values that are found, and the ledgers that were read for them."""
    world.read.clear()
    with TopicReader(world.clients, world.topic) as topic:
        rows = topic.scan(["value"], filter=where).read_all()
    return sorted(int(one) for one in rows["value"].to_pylist()), set(world.read)


@pytest.mark.parametrize(
    ("where", "found", "ledgers"),
    [
        (published >= at(3), [4, 9], {12, 13}),
        (published == at(2), [2, 2], {11, 12, 13}),
        (published < at(1), [0, 0], {10, 13}),
        ((published < at(1)) | (published > at(8)), [0, 0, 9], {10, 13}),
        (~(published >= at(1)) & (pc.field("__ledgerId") < 13), [0, 0], {10}),
        (published.is_null(), [], {10, 11, 12, 13}),
        (pc.field("value") == b"2", [2, 2], {10, 11, 12, 13}),
    ],
)
def test_what_was_learned_prunes(
    world: World, where: pc.Expression, found: list[int], ledgers: set[int]
) -> None:
    first, read = values(world, where)
    assert first == found, "nothing is known yet"
    assert read >= ledgers
    values(world, None)  # a complete read
    assert values(world, where) == (found, ledgers)
