"""Statements that run, and ``pulsar-lake sql`` on a terminal and with files of statements."""
