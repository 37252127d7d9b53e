"""A `FaultyStore` that translates, as a process of its own.

python -m testbed.storages.gcs_xml --port 4443 --upstream http://127.0.0.1:4444
"""

import argparse
import sys
import time
from pathlib import Path

from testbed.faults import FaultyStore
from testbed.process import Process


def translator(module: str, port: int, upstream: int, log: Path) -> Process:
    """In front of a server on another port of loopback."""
    command = [sys.executable, "-m", module, "--port", str(port)]
    return Process(module, [*command, "--upstream", f"http://127.0.0.1:{upstream}"], log)


def run(store: type[FaultyStore]) -> None:
    """Until it is killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--upstream", required=True)
    asked = parser.parse_args()
    with store(asked.upstream, asked.port):
        while True:
            time.sleep(3600)
