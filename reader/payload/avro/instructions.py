"""The instructions of an Avro program.

An instruction is (op, slot, group, a, b, c, d, bytes). ``bytes`` is what it adds to the columns
besides what each row takes: of ARRAY and MAP an item, of CALL and CONVERT the text without the parts
that are in the payload. It bounds time as well, with 8 for each instruction.

| op | reads | a | b | c | d |
| --- | --- | --- | --- | --- | --- |
| END | nothing: the datum must end here | | | | |
| BOOL | one byte, 0 or 1 | | | | |
| INT, LONG | zigzag varint | factor | message if it overflows | 1: write as double | |
| FLOAT, DOUBLE | 4 or 8 bytes | | | | |
| STRING, BYTES | length and bytes | | | | |
| FIXED | a bytes | size | | | |
| ENUM | index | first (start, length) in `table` | symbols | | |
| UNION | index | first branch target in `table` | branches | | |
| JUMP | | target | | | |
| MARK | nothing: the struct is not NULL | | | | |
| ARRAY, MAP | blocks; the body follows, up to NEXT | target after it | least bytes of an item | inner group | |
| KEY | a map's key | | | | |
| NEXT | end of a body | | | | |
| CALL | a recursive record | target | | converter | |
| RETURN | | | | | |
| PROBLEM | nothing: message a is a problem of the row | message | | | |
| DECIMAL | a bytes, or -1: length first | size | message | precision | |
| CONVERT | a bytes, or -1: length first | size | message | converter | most bytes, 0: any number, even none |
"""  # noqa: E501

from __future__ import annotations

__all__ = [
    "ARRAY",
    "BOOL",
    "BYTES",
    "CALL",
    "CONVERT",
    "DECIMAL",
    "DOUBLE",
    "END",
    "ENUM",
    "FIXED",
    "FLOAT",
    "INT",
    "JUMP",
    "KEY",
    "LONG",
    "MAP",
    "MARK",
    "NEXT",
    "PROBLEM",
    "RETURN",
    "STRING",
    "UNION",
]

(
    END,
    BOOL,
    INT,
    LONG,
    FLOAT,
    DOUBLE,
    STRING,
    BYTES,
    FIXED,
    ENUM,
    UNION,
    JUMP,
    MARK,
    ARRAY,
    MAP,
    KEY,
    NEXT,
    CALL,
    RETURN,
    PROBLEM,
    DECIMAL,
    CONVERT,
) = range(22)
