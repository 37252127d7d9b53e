"""The Go client: structs by reflection, through `encoding/json` and the client's Avro library."""

import subprocess
from pathlib import Path

from testbed.clients.messages import ClientTopic, topics_of
from testbed.programs import go_build

_SOURCES = Path(__file__).with_name("go")


def go_topics(
    seed: int, schemas: int, messages: int, service_url: str = "", prefix: str = ""
) -> list[ClientTopic]:
    """Return `schemas` random topics of `messages` messages each, JSON and AVRO in turn.

    service_url: also send the messages, each topic's to `prefix` and the topic's number.
    Raises ToolMissingError if Go is not installed, and CalledProcessError if the client fails.
    """
    command = [str(go_build(_SOURCES)), str(seed), str(schemas), str(messages)]
    if service_url:
        command += [service_url, prefix]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return topics_of(done.stdout.split("\n"))
