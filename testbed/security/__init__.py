"""Pulsar with everything locked: who a client is, and what it may do.

    certificates     a certificate authority, and what it signs: PEM files
    tokens           tokens of Pulsar's token authentication, and a server that gives them out
    secured_cluster  `SecuredCluster`: TLS everywhere, tokens, client certificates, authorization

Imports `testbed.cluster`, `admin`, `process` and `server.config`.
"""
