"""Text for a terminal or a log: what would steer it is shown, not done.

Names of topics and keys, values of properties and the errors that quote them are producers' text: a
terminal would take ESC sequences, and C1 controls, as commands, and bidirectional overrides show
one text for another. JSON keeps its data, by escapes of its own; CSV is data as it is.
"""

_CONTROLS = {*range(0x20), *range(0x7F, 0xA0)} - {ord("\t"), ord("\n")}
_MARKS = {
    0x061C,
    *range(0x200E, 0x2010),
    *range(0x2028, 0x202F),  # two line ends, embeddings and overrides
    *range(0x2066, 0x206A),  # isolates
    *range(0xD800, 0xE000),  # halves of characters, which no stream takes
}
_SHOWN = {code: f"\\x{code:02x}" for code in _CONTROLS} | {
    code: f"\\u{code:04x}" for code in _MARKS
}
_SHOWN[ord("\r")] = "\\r"
_SHOWN_JSON = {code: f"\\u{code:04x}" for code in _SHOWN}


def printable(text: object) -> str:
    """Controls and marks of direction as escapes; tabs and line ends stay."""
    return str(text).translate(_SHOWN)


def printable_json(text: str) -> str:
    """The same JSON, without any of them."""
    return text.translate(_SHOWN_JSON)
