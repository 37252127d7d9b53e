"""Pulsar's admin REST against a server in this process: questions, credentials, TLS."""
