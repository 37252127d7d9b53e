"""Entries by TLS from a bookie that wants to know who asks."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from offloader.config import Config
from reader.bookkeeper.reads.read_messages import ReadKind
from reader.clients import Clients
from reader.errors import ConfigurationError, UnavailableError
from reader.model import LedgerMetadata, Partition, Topic
from reader.pulsar.admin import AdminClient
from testbed.security import Authority, SecuredCluster
from tests.security.conftest import READER, Orders


@pytest.fixture(scope="module")
def ledger(settings: Callable[..., Config], orders: Orders) -> tuple[LedgerMetadata, int]:
    """A sealed ledger and its last entry."""
    with AdminClient(settings(READER).pulsar) as admin:
        listing = admin.ledgers(Partition(Topic.parse(orders.topic), 0))
    found = next(one for one in listing.ledgers if one.entries and one.metadata)
    assert found.metadata is not None
    return found.metadata, listing.last_entry(found)


def read(config: Config, ledger: tuple[LedgerMetadata, int], *, singly: bool = False) -> int:
    metadata, last = ledger
    with Clients(config) as clients, clients.bookies() as bookies:
        if singly:
            bookies.health.advance(time.monotonic())
            bookies.health.avoid_range_reads(metadata.replicas(0)[0])
        count = sum(len(block.entry_ids) for block in bookies.read(metadata, 0, last))
        used = [kind for _, kind in bookies._connections._open]  # noqa: SLF001
        assert used == [ReadKind.ENTRY if singly else ReadKind.RANGE]
    return count


@pytest.mark.parametrize("singly", [True, False])
def test_both_protocols_by_tls_and_sasl(
    settings: Callable[..., Config], ledger: tuple[LedgerMetadata, int], singly: bool
) -> None:
    assert read(settings(READER), ledger, singly=singly) == ledger[1] + 1


def test_sasl_alone(
    secured: SecuredCluster, settings: Callable[..., Config], ledger: tuple[LedgerMetadata, int]
) -> None:
    config = settings(READER, bookkeeper=secured.bookkeeper(tls=False))
    assert read(config, ledger) == ledger[1] + 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sasl_user": ""}, "refuses the connection"),
        ({"sasl_password": "wrong"}, "does not accept the SASL user bookkeeper-reader"),
        ({"sasl_user": "bookkeeper-unknown"}, "does not accept the SASL user"),
        ({"tls_certificate_file": None, "tls_key_file": None}, "refuses the connection"),
        ({"tls_trust_certs_file": None}, "certificate of bookie .* is not accepted"),
        ({"tls": False, "sasl_user": ""}, "requires authentication"),
    ],
)
def test_what_a_bookie_does_not_like_is_one_clear_error(
    secured: SecuredCluster,
    settings: Callable[..., Config],
    ledger: tuple[LedgerMetadata, int],
    change: dict[str, Any],
    message: str,
) -> None:
    # A bookie does not answer an unknown user or a wrong password (so the timeout is short);
    # all else it answers, on a loaded machine after some seconds.
    timeout = "6s" if "the SASL user" in message else "20s"
    config = settings(READER, bookkeeper=secured.bookkeeper(**change), bookie_timeout=timeout)
    with pytest.raises(ConfigurationError, match=message) as error:
        read(config, ledger)
    assert secured.sasl_password not in str(error.value)
    assert "wrong" not in str(error.value)


def test_hostnames_are_verified(
    secured: SecuredCluster, settings: Callable[..., Config], ledger: tuple[LedgerMetadata, int]
) -> None:
    address = secured.bookies[0].address
    elsewhere = {address: address.replace("127.0.0.1", "localhost")}
    with pytest.raises(ConfigurationError, match="localhost"):
        read(settings(READER, bookies=elsewhere), ledger)
    lenient = secured.bookkeeper(tls_verify_hostname=False)
    config = settings(READER, bookies=elsewhere, bookkeeper=lenient)
    assert read(config, ledger) == ledger[1] + 1


def test_a_foreign_client_certificate(
    secured: SecuredCluster,
    settings: Callable[..., Config],
    ledger: tuple[LedgerMetadata, int],
    tmp_path: Path,
) -> None:
    pair = Authority(tmp_path, "another authority").sign("reader")
    files = {"tls_certificate_file": str(pair.certificate), "tls_key_file": str(pair.key)}
    with pytest.raises((ConfigurationError, UnavailableError)):
        read(settings(READER, bookkeeper=secured.bookkeeper(**files)), ledger)


def test_certificates_with_roles(
    secured: SecuredCluster, settings: Callable[..., Config], ledger: tuple[LedgerMetadata, int]
) -> None:
    config = settings(READER, bookkeeper=secured.bookkeeper(sasl_user=""))
    pair = secured.authority.sign("other", unit="0:other")
    files = {"tls_certificate_file": str(pair.certificate), "tls_key_file": str(pair.key)}
    other = settings(READER, bookkeeper=secured.bookkeeper(sasl_user="", **files))
    with secured.certificates_with_roles():
        for singly in (True, False):
            assert read(config, ledger, singly=singly) == ledger[1] + 1
            with pytest.raises(ConfigurationError, match="refuses the connection"):
                read(other, ledger, singly=singly)
