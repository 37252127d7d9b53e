"""`python -m testbed.storages`: builds the server of each kind, starts it once, says what fails."""

import sys

from testbed.storages.kinds import KINDS, storage_server


def main() -> int:
    failed = 0
    for kind in KINDS:
        try:
            with storage_server(kind):
                print(f"{kind}: starts")
        except Exception as error:  # noqa: BLE001 - the other kinds are of interest, too
            failed = 1
            print(f"{kind}: {error}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
