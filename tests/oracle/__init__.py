"""Pulsar's own Java client as an oracle: what it writes and reads is how it should be.

- `java/`: the client behind JSON lines, a few hundred lines of Java, compiled on first use;
- `oracle`: `Oracle`, the running JVM.

Imports nothing of the product, as `testbed`.
"""
