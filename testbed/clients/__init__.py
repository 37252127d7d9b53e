"""Pulsar's clients of other languages as writers: random types and values, in their own forms.

    messages       a message with its value, and the output of a client
    cpp_client     the C++ client (`cpp/`, compiled once): KeyValue of bytes, through a broker
    go_client      the Go client (`go/`, compiled once): structs by reflection, `encoding/json`
    java_client    the Java client (`java/`): classes by reflection, through Jackson and Avro
    python_client  pulsar-client's records: `JsonSchema` and `AvroSchema` of random classes
    node_client    what Node.js applications send: `JSON.stringify` of objects (`node/`)

All but the C++ client encode a value without a broker, so hundreds of schemas take seconds; Java
and Go can also send to a topic. What a client wrote comes with the value as the same client reads
it (`ClientMessage`).
"""

from testbed.clients.cpp_client import KeyValueTopic, cpp_topics
from testbed.clients.go_client import go_topics
from testbed.clients.java_client import java_topics
from testbed.clients.messages import UNCERTAIN, ClientMessage, ClientTopic
from testbed.clients.node_client import node_topics
from testbed.clients.python_client import python_topics

__all__ = [
    "UNCERTAIN",
    "ClientMessage",
    "ClientTopic",
    "KeyValueTopic",
    "cpp_topics",
    "go_topics",
    "java_topics",
    "node_topics",
    "python_topics",
]
