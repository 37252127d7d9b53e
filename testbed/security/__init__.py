"""Pulsar with everything locked: who a client is, and what it may do.

    certificates     a certificate authority, and what it signs: PEM files
    tokens           tokens of Pulsar's token authentication, and a server that gives them out
    secured_cluster  `SecuredCluster`: TLS everywhere, tokens, client certificates, authorization

Imports `testbed.cluster`, `admin`, `process` and `server.config`.
"""

from testbed.security.certificates import Authority, Pair
from testbed.security.secured_cluster import TOKEN_KEY, SecuredCluster
from testbed.security.tokens import TokenServer

__all__ = ["TOKEN_KEY", "Authority", "Pair", "SecuredCluster", "TokenServer"]
