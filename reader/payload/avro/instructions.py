"""The instructions of an Avro program.

An instruction is (op, slot, group, a, b, c, d, bytes). ``bytes`` is what it adds to the columns
besides what each row takes: of ARRAY and MAP an item, of CALL and CONVERT the text without the parts
that are in the payload. It bounds time as well, with 8 for each instruction.

| op | reads | a | b | c | d |
| --- | --- | --- | --- | --- | --- |
| END | nothing: the datum must end here | | | | |
| BOOL | one byte, 0 or 1 | | | | |
| INT, LONG | zigzag varint | factor | message if it does not fit | `AS_OTHER`: write as double; `AS_DATE`, `AS_TIMESTAMP`: of the years 1 to 9999; else 0, or the precision of a decimal | scale of it |
| FLOAT, DOUBLE | 4 or 8 bytes | | message if it does not fit | `AS_OTHER`: write as int64 | |
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
| DECIMAL | a bytes, or -1: length first | size | message | precision; `AS_OTHER`: write as int64 | power of ten |
| CONVERT | a bytes, or -1: length first | size | message | converter | most bytes, 0: any number, even none |
"""  # noqa: E501

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

AS_OTHER = 39
"""Instead of a precision: the column is of another kind of number, int64 or double."""
AS_DATE, AS_TIMESTAMP = 40, 41
"""Instead of a precision: the column holds days, or microseconds, of the years 1 to 9999."""
