"""Pulsar's own Java client as an oracle: what it writes and reads is how it should be.

    java_client  `Oracle`: the running JVM, asked by JSON lines

`java/` holds its side, a few hundred lines of Java, compiled on first use. Imports
`testbed.process`, `publish` and `server`.
"""

from testbed.oracle.java_client import Json, Oracle

__all__ = ["Json", "Oracle"]
