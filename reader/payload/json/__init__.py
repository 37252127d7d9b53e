"""Json.

decoder              JSON payloads -> Arrow arrays: plain ones by a compiled loop, doubtful
double               Decimal numbers to doubles, inside of kernels.
kernel               The compiled loop that reads plain JSON payloads into slots, and doubt
numbers              JSON number literals -> exact column values, or None where the column
program              Record schemas -> tables for the one kernel of `json_kernel`.
scan                 Tokens of JSON (RFC 8259), found by compiled functions over ``data[pos
values               One JSON payload -> column values, in Python: what is right, and what
"""

__all__: list[str] = []
