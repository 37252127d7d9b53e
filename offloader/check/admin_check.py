"""The admin REST: reachable, with TLS that is right and an identity that is accepted."""

import re

from offloader.check.outcome import Finding, Waiting
from reader.config import PulsarConfig
from reader.errors import NotFoundError
from reader.pulsar import AdminClient

_VERSION = re.compile(r"\d+\.\d+\.\d[\w.+-]*")


def check_admin(admin: AdminClient, config: PulsarConfig, waiting: Waiting) -> Finding:
    """Raises as ``AdminClient`` for who does not answer or refuses us."""
    url = admin.http.url
    waiting(url)
    other = Finding.failed(
        f"{url} answers, but not as a Pulsar admin",
        "pulsar.admin_url is the broker's web service (port 8080, with TLS 8443), or a proxy's",
    )
    try:
        version = admin.version()
    except NotFoundError:
        return other
    if not _VERSION.fullmatch(version):
        return other
    cluster = admin.cluster()
    text = f"Pulsar {version} at {url}, {_identity(config)}{_transport(config)}"
    if not cluster:
        return Finding.warning(
            f"{text}; Pulsar lists several clusters",
            "set pulsar.cluster, so that another cluster's ledgers are never taken for this one's",
        )
    return Finding.ok(f"{text}; cluster {cluster}")


def _identity(config: PulsarConfig) -> str:
    if config.oauth2.configured:
        return "the OAuth2 token is accepted"
    if config.token_file is not None:
        return f"the token in {config.token_file} is accepted"
    if config.token is not None:
        return "the token is accepted"
    if config.tls_certificate_file is not None:
        return "the client certificate is accepted"
    return "without an identity"


def _transport(config: PulsarConfig) -> str:
    if not config.admin_url.lower().startswith("https:"):
        return ""
    return ", TLS verified" if config.tls_verify_hostname else ", TLS without the host's name"
