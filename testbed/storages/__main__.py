"""`python -m testbed.storages`: builds the server of each kind, starts it once, says what fails."""

from __future__ import annotations

import sys

from testbed.storages.kinds import KINDS, storage_server

failed = False
for kind in KINDS:
    try:
        with storage_server(kind):
            print(f"{kind}: starts")
    except Exception as error:  # noqa: BLE001 - whatever it is, the other kinds are of interest, too
        failed = True
        print(f"{kind}: {error}")
sys.exit(failed)
