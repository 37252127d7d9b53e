"""The broker's binary protocol: a connection, and where the lookup of a topic leads to."""

from offloader.check.outcome import Finding, Waiting
from reader.clients import Clients
from reader.errors import UnavailableError
from reader.model import Partition


def check_broker(clients: Clients, partition: Partition | None, waiting: Waiting) -> Finding:
    """``partition``: to be looked up, if there is any. Raises as ``BrokerClient.locate``."""
    url = clients.settings.pulsar.service_url
    waiting(url)
    with clients.broker() as broker:
        first = broker.greet()
        if partition is None:
            return Finding.ok(f"{first} answers; there is no topic to look up")
        try:
            place = broker.locate(partition)
        except UnavailableError as error:
            return Finding.failed(error.message, error.hint or "")
    there = "itself" if place == first else place
    return Finding.ok(f"{first} answers, and the lookup of {partition} leads to {there}")
