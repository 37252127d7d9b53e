"""The generated code is that of the definition, and the wire format by hand is protobuf's."""

import ast
import re
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from hypothesis import given
from hypothesis import strategies as st

from reader.errors import CorruptError
from reader.wire import Fields, encoded, varint
from reader.wire.pulsar_pb2 import DESCRIPTOR, CommandConnect, CommandSuccess
from tests.unit.repository.tree import ROOT

FOLDER = ROOT / "reader" / "wire"
HINT = "run `make proto`"
TYPES = {
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_UINT32: "uint32",
}
_BLOCK = re.compile(r"(message|enum) (\w+) \{\}?|\}|([^;{}]+);")


def defined(proto: Path) -> dict[str, set[str]]:
    """The fields of each message, and the values of each enumeration, as they are written."""
    text = re.sub(r"//.*", "", proto.read_text()).partition(";\n\npackage")[2].partition(";")[2]
    found: dict[str, set[str]] = {}
    names: list[str] = []
    for match in _BLOCK.finditer(text):
        if match[1]:
            names.append(match[2])
            found[".".join(names)] = set()
            if match[0].endswith("}"):
                names.pop()
        elif match[3]:
            found[".".join(names)].add(" ".join(match[3].split()))
        else:
            names.pop()
    return found


def compiled() -> dict[str, set[str]]:
    """The same, of the generated code."""
    found: dict[str, set[str]] = {}

    def add_enum(enum: EnumDescriptor, above: str) -> None:
        found[above + enum.name] = {f"{value.name} = {value.number}" for value in enum.values}

    def add(message: Descriptor, above: str) -> None:
        found[above + message.name] = {field_text(field) for field in message.fields}
        for enum in message.enum_types:
            add_enum(enum, f"{above}{message.name}.")

    for enum in DESCRIPTOR.enum_types_by_name.values():
        add_enum(enum, "")
    for message in DESCRIPTOR.message_types_by_name.values():
        add(message, "")
    return found


def field_text(field: FieldDescriptor) -> str:
    kind = field.enum_type or field.message_type
    name = kind.name if kind is not None else TYPES[field.type]
    default = f" [default = {field.default_value}]" if field.has_default_value else ""
    return f"{'repeated ' * field.is_repeated}{name} {field.name} = {field.number}{default}"


def test_the_generated_code_is_that_of_the_definition() -> None:
    found = compiled()
    assert len(found) > 40
    assert found == defined(FOLDER / "pulsar.proto"), HINT


def test_the_generated_types_are_those_of_the_definition() -> None:
    tree = ast.parse((FOLDER / "pulsar_pb2.pyi").read_text())
    classes = {one.name: one for one in tree.body if isinstance(one, ast.ClassDef)}
    for message in DESCRIPTOR.message_types_by_name.values():
        named = {
            one.target.id
            for one in classes[message.name].body
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        }
        assert {field.name for field in message.fields} <= named, HINT


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_numbers(value: int) -> None:
    data = encoded((1, value))
    assert data == b"\x08" + varint(value) == CommandSuccess(request_id=value).SerializeToString()
    assert Fields(data, "a message").number(1) == value % (1 << 64)


def test_texts() -> None:
    data = encoded((1, "a"), (3, b"b"), (4, None))
    assert data == CommandConnect(client_version="a", auth_data=b"b").SerializeToString()
    assert Fields(data, "a message").text(1) == "a"


@given(st.binary(max_size=80))
def test_garbage_is_accepted_or_corrupt(data: bytes) -> None:
    try:
        found = Fields(data, "a message")
    except CorruptError as error:
        assert str(error) == "a message is not protobuf, or ends too early"
    else:
        assert found.number(1, 7) >= 0


@pytest.mark.parametrize("data", [b"\x08", b"\x0a\x05a", b"\x0b", b"\x00\x00", b"\x09\x00"])
def test_what_is_cut_off_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptError):
        Fields(data, "a message")
