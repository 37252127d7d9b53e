"""A certificate authority for tests, and what it signs: PEM files."""

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@dataclass(frozen=True, slots=True)
class Pair:
    """Files of a certificate and its private key (PKCS 8, no password)."""

    certificate: Path
    key: Path

    def server_context(self) -> ssl.SSLContext:
        """Of a server that shows the certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context


class Authority:
    """`certificate` is what clients trust; `sign` makes what it vouches for."""

    def __init__(self, directory: Path, name: str = "test authority") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._name = _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = directory / "ca.pem"
        builder = _builder(self._name, self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        self.certificate.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))

    def sign(self, name: str, *, unit: str = "", hosts: tuple[str, ...] = ("127.0.0.1",)) -> Pair:
        """A pair for the common name `name`, valid as server (of `hosts`) and as client.

        `unit`: the subject's organizational unit, where BookKeeper looks for roles.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        names = [
            x509.DNSName(host)
            if host.strip("0123456789.")
            else x509.IPAddress(ipaddress.ip_address(host))
            for host in hosts
        ]
        usage = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        signed = (
            _builder(_name(name, unit), self._name, key.public_key())
            .add_extension(x509.SubjectAlternativeName(names), False)
            .add_extension(x509.ExtendedKeyUsage(usage), False)
            .sign(self._key, hashes.SHA256())
        )
        pair = Pair(self._directory / f"{name}.pem", self._directory / f"{name}-key.pem")
        pair.certificate.write_bytes(_pem(signed))
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return pair


def _name(common: str, unit: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if unit:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit))
    return x509.Name(parts)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=30))
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
