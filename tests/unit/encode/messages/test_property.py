"""Random rows through random formats: what is decoded is what was written, in order."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reader.decode import Decryption
from reader.encode import Compression, Encryption, EntryFormat
from reader.sink.staged_entries import read_entries, staged_entry
from tests.support.examples import examples
from tests.unit.decode.test_decryption import RSA, pem
from tests.unit.encode.messages import encoding
from tests.unit.encode.messages.proto import batch_of

MOST = 6 << 10
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
TIMES = st.none() | st.integers(1, 253_402_300_799_999)
BYTES = st.binary(max_size=40) | st.builds(
    lambda unit, count: unit * count, st.binary(max_size=9), st.integers(0, 2000)
)


def rows_with(keys: st.SearchStrategy[Any]) -> st.SearchStrategy[list[encoding.Row]]:
    one = st.builds(
        encoding.Row,
        value=st.none() | BYTES,
        key=st.none() | keys,
        base64=st.none(),
        order=st.none() | st.binary(max_size=12),
        properties=st.none() | st.dictionaries(TEXT, TEXT, max_size=3),
        event=TIMES,
        deliver=st.none() | st.none() | st.none() | TIMES,
    )
    return st.lists(one, max_size=25)


ROWS = rows_with(TEXT) | rows_with(st.binary(max_size=12))
FORMS = st.builds(
    EntryFormat,
    messages=st.integers(1, 12),
    batch_bytes=st.integers(1, MOST // 2),
    entry_bytes=st.just(MOST),
    compression=st.sampled_from(Compression),
)


@settings(max_examples=examples(300), deadline=None)
@given(ROWS, FORMS, st.booleans(), st.integers(1, 4), st.integers(0, 1 << 40))
def test_rows(
    rows: list[encoding.Row], form: EntryFormat, sealed: bool, calls: int, first: int
) -> None:
    encryption = Encryption({"k": encoding.public_rsa()}) if sealed else None
    made = encoding.encode(rows, form, encryption, calls=calls)
    entries = list(read_entries(memoryview(b"".join(b"".join(staged_entry(one)) for one in made))))
    assert max((len(one) - 10 for one in encoding.stored(entries, first)), default=0) <= MOST
    found = encoding.decoded(entries, first, decryption=Decryption({"k": pem(RSA)}.get))
    wanted = encoding.expected(rows)
    assert [{name: row[name] for name in wanted[0]} for row in found] == wanted
    ids = [row["__sequenceId"] for row in found]
    if sealed:
        firsts = [row["__sequenceId"] for row in found if row["__batchIndex"] <= 0]
        assert ids == sorted(ids)
        assert firsts == sorted(set(ids))
        return
    assert ids == sorted(set(ids))
    for one in encoding.independent(entries, first):
        if one.metadata.HasField("num_messages_in_batch"):
            messages = batch_of(one.plain)
            assert len(messages) == one.metadata.num_messages_in_batch <= form.messages
            assert len(one.plain) <= form.batch_bytes
