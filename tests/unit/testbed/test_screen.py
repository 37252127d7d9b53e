"""How demo and benchmarks print."""

import io

from testbed.screen import Screen


def test_screen_names_what_failed() -> None:
    out = io.StringIO()
    screen = Screen(out)
    with screen.step("Step [one]"):
        screen.table(["name", "number"], [["a [b]", 1]])
        screen.check("this holds", True)
        screen.check("that holds", False, "1, not 2")
    screen.end()
    text = out.getvalue()
    assert "Step [one]" in text
    assert "a [b]" in text
    assert "✗ that holds: 1, not 2" in text
    assert "FAILED: that holds\n1 of 2 checks failed" in text
    assert screen.failed == ["that holds"]
