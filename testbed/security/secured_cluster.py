"""`SecuredCluster`: TLS everywhere, tokens and client certificates, authorization on."""

import base64
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from testbed.admin import Admin
from testbed.cluster import ProcessCluster
from testbed.security.certificates import Authority
from testbed.security.tokens import make_token
from testbed.server import config

_ADMIN = "superuser"
TOKEN_KEY = b"the key that signs this cluster's tokens"
_BROKER = ("bookkeeper-broker", "the-brokers-sasl-password")


class SecuredCluster(ProcessCluster):
    """One broker and one bookie; nothing answers without TLS and without an identity.

    The broker knows a role by `token(role)`, or by a certificate of that common name. The bookie
    asks for a client certificate, and then for SASL (DIGEST-MD5).
    """

    sasl_user = "bookkeeper-reader"
    sasl_password = "the-readers-sasl-password"

    def __init__(self) -> None:
        self._certificates = tempfile.TemporaryDirectory(prefix="pulsar-lake-certificates-")
        folder = Path(self._certificates.name)
        self.authority = Authority(folder)
        self.server = self.authority.sign("server")
        self.client = self.authority.sign("reader", unit="0:lake-reader")
        self._broker_pair = self.authority.sign("broker", unit="0:lake-broker")
        self._jaas = folder / "jaas.conf"
        self._jaas.write_text(self._logins())
        super().__init__(bookies=1, max_entries_per_ledger=5_000)

    def stop(self) -> None:
        super().stop()
        self._certificates.cleanup()

    @property
    def service_url(self) -> str:
        return f"pulsar+ssl://127.0.0.1:{self._broker_port}"

    @property
    def admin_url(self) -> str:
        return f"https://127.0.0.1:{self._web_port}"

    def token(self, role: str, seconds: float | None = None) -> str:
        """Of any role; `seconds` until it expires."""
        return make_token(TOKEN_KEY, role, seconds)

    def pulsar(self, role: str | None, **more: Any) -> dict[str, Any]:
        """`[pulsar]` as a role needs it that may read; None: without an identity for the broker."""
        trust = {"tls_trust_certs_file": str(self.authority.certificate)}
        identity = {"token": self.token(role)} if role else {}
        addresses = {"service_url": self.service_url, "admin_url": self.admin_url}
        return {**addresses, **trust, **identity, "bookkeeper": self.bookkeeper(), **more}

    def bookkeeper(self, **more: Any) -> dict[str, Any]:
        """`[pulsar.bookkeeper]` as the bookie wants it."""
        return {
            "tls": True,
            "tls_trust_certs_file": str(self.authority.certificate),
            "tls_certificate_file": str(self.client.certificate),
            "tls_key_file": str(self.client.key),
            "sasl_user": self.sasl_user,
            "sasl_password": self.sasl_password,
            **more,
        }

    @contextmanager
    def certificates_with_roles(self) -> Iterator[None]:
        """Meanwhile a client certificate with a role is all that the bookie asks for.

        The broker is nobody to it then.
        """
        path = self.directory / "conf" / "bookie-0.conf"
        before = path.read_text()
        changed = before.replace(
            "org.apache.bookkeeper.sasl.SASLBookieAuthProviderFactory",
            "org.apache.bookkeeper.tls.BookieAuthZFactory",
        )
        path.write_text(f"{changed}authorizedRoles=lake-reader\n")
        try:
            self._restart_bookie()
            yield
        finally:
            path.write_text(before)
            self._restart_bookie()

    def _restart_bookie(self) -> None:
        [bookie] = self.bookies
        bookie.kill()
        bookie.start()

    def admin(self) -> Admin:
        """As the superuser."""
        return Admin(self.admin_url, token=self.token(_ADMIN), ca=self.authority.certificate)

    def _http(self) -> httpx.Client:
        return httpx.Client(
            base_url=self.admin_url,
            timeout=5,
            headers={"Authorization": f"Bearer {self.token(_ADMIN)}"},
            verify=ssl.create_default_context(cafile=self.authority.certificate),
        )

    def _logins(self) -> str:
        module = "org.apache.zookeeper.server.auth.DigestLoginModule required"
        user, password = _BROKER
        users = {user: password, self.sasl_user: self.sasl_password}
        known = " ".join(f'user_{name}="{secret}"' for name, secret in users.items())
        return (
            f"Bookie {{ {module} {known}; }};\n"
            f'BookKeeper {{ {module} username="{user}" password="{password}"; }};\n'
        )

    def _more_of_java(self) -> str:
        # ZooKeeper would look for a login of its own there.
        return f"-Djava.security.auth.login.config={self._jaas} -Dzookeeper.sasl.client=false"

    def _more_of_setup(self) -> dict[str, str]:
        return {
            "--web-service-url-tls": self.admin_url,
            "--broker-service-url-tls": self.service_url,
        }

    def _more_of_bookie(self, number: int) -> config.Settings:
        return {
            "tlsProviderFactoryClass": "org.apache.bookkeeper.tls.TLSContextFactory",
            "tlsProvider": "JDK",
            "tlsClientAuthentication": True,
            "tlsKeyStoreType": "PEM",
            "tlsKeyStore": self.server.key,
            "tlsCertificatePath": self.server.certificate,
            "tlsTrustStoreType": "PEM",
            "tlsTrustStore": self.authority.certificate,
            "bookieAuthProviderFactoryClass": (
                "org.apache.bookkeeper.sasl.SASLBookieAuthProviderFactory"
            ),
        }

    def _more_of_broker(self) -> config.Settings:
        key = base64.b64encode(TOKEN_KEY).decode()
        authentication = "org.apache.pulsar.broker.authentication.AuthenticationProvider"
        return {
            "brokerServicePort": "",
            "webServicePort": "",
            "brokerServicePortTls": self._broker_port,
            "webServicePortTls": self._web_port,
            "tlsCertificateFilePath": self.server.certificate,
            "tlsKeyFilePath": self.server.key,
            "tlsTrustCertsFilePath": self.authority.certificate,
            "authenticationEnabled": True,
            "authenticationProviders": f"{authentication}Token,{authentication}Tls",
            "tokenSecretKey": f"data:;base64,{key}",
            "authorizationEnabled": True,
            "superUserRoles": _ADMIN,
            "brokerClientTlsEnabled": True,
            "brokerClientTrustCertsFilePath": self.authority.certificate,
            "brokerClientAuthenticationPlugin": (
                "org.apache.pulsar.client.impl.auth.AuthenticationToken"
            ),
            "brokerClientAuthenticationParameters": f"token:{self.token(_ADMIN)}",
            # A bookie that asks for SASL answers START_TLS in a way that the v2 client cannot read.
            "bookkeeperUseV2WireProtocol": False,
            "bookkeeperTLSProviderFactoryClass": "org.apache.bookkeeper.tls.TLSContextFactory",
            "bookkeeperTLSClientAuthentication": True,
            "bookkeeperTLSKeyFileType": "PEM",
            "bookkeeperTLSKeyFilePath": self._broker_pair.key,
            "bookkeeperTLSCertificateFilePath": self._broker_pair.certificate,
            "bookkeeperTLSTrustCertTypes": "PEM",
            "bookkeeperTLSTrustCertsFilePath": self.authority.certificate,
            "bookkeeperClientAuthenticationPlugin": (
                "org.apache.bookkeeper.sasl.SASLClientProviderFactory"
            ),
        }
