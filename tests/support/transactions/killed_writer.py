"""A writer of a transaction that is killed while the network still has its bytes.

python -m tests.support.transactions.killed_writer SERVICE_URL TOPIC MOST LEAST
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.proxy import TcpProxy
from tests.support.transactions.broker_wire import BrokerWire, Transaction

LATE = b"late"


@contextmanager
def killed_writer(service_url: str, topic: str, transaction: Transaction) -> Iterator[TcpProxy]:
    """A process has sent three messages and is dead; ``resume()`` lets them reach the broker."""
    with TcpProxy(service_url.removeprefix("pulsar://")) as network:
        words = [f"pulsar://{network.address}", topic, *map(str, transaction)]
        command = [sys.executable, "-m", "tests.support.transactions.killed_writer", *words]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as writer:
            assert writer.stdin and writer.stdout
            try:
                assert writer.stdout.readline() == "connected\n"
                network.stall()
                writer.stdin.write("\n")
                writer.stdin.flush()
                assert writer.stdout.readline() == "sent\n"
            finally:
                writer.kill()  # SIGKILL
        yield network


def _write(service_url: str, topic: str, most: str, least: str) -> None:
    wire = BrokerWire(service_url)
    wire.producer(topic, "killed", transactional=True)
    print("connected", flush=True)
    sys.stdin.readline()
    for number in range(3):
        wire.send(number, LATE, name="killed", transaction=(int(most), int(least)))
    print("sent", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    _write(*sys.argv[1:])
