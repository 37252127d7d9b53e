"""`python -m demo`: exit code 0 if every check holds, 1 if one fails, 130 after Ctrl-C."""

import argparse
import signal
import sys
import traceback
from pathlib import Path

from testbed.screen import Screen, own_output


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo", description="Demonstrates pulsar-lake.")
    parser.add_argument(
        "--out", type=Path, default=Path("demo-out"), help="folder for the chart and the log"
    )
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    log = asked.out / "demo.log"
    # SIGTERM cleans up like Ctrl-C, and both work in a script's background job as well.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with own_output(log) as out:
        screen = Screen(out)
        try:
            from demo.story import tell  # after the redirection: Spark and Arrow may print

            tell(screen, asked.out)
        except KeyboardInterrupt:
            screen.title("\nStopped; all processes of the demo have ended.")
            return 130
        except Exception as error:  # noqa: BLE001 - any error becomes one line
            traceback.print_exc()
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            screen.check(screen.current, False, first)
            screen.line(f"details in {log}")
        screen.end()
        return 1 if screen.failed else 0


if __name__ == "__main__":
    sys.exit(main())
