"""What Node.js applications send: `JSON.stringify` of objects, under a definition of theirs.

The Node client itself is not needed: it takes ready bytes. (It could not be had either: its
package fetches a library from elsewhere.)
"""

import shutil
import subprocess
from pathlib import Path

from testbed.clients.messages import ClientTopic, topics_of
from testbed.programs import ToolMissingError

_SOURCE = Path(__file__).parent / "node" / "client.js"


def node_topics(seed: int, schemas: int, messages: int) -> list[ClientTopic]:
    """Return `schemas` random topics of `messages` messages each, all of JSON.

    Raises ToolMissingError if Node.js is not installed, and CalledProcessError if the script fails.
    """
    program = shutil.which("node")
    if program is None:
        raise ToolMissingError("Node.js (`node`) is not on the PATH: it writes messages of a test")
    numbers = [str(number) for number in (seed, schemas, messages)]
    done = subprocess.run(
        [program, str(_SOURCE), *numbers], stdout=subprocess.PIPE, text=True, check=True
    )
    return topics_of(done.stdout.split("\n"))
