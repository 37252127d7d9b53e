"""Which topic a namespace and a name of the catalog stand for."""

from reader.errors import NotFoundError
from reader.model import Topic

DEFAULT_NAMESPACE = "public/default"
COMPACTED = "$compacted"
HOT = "$hot@"
COLD = "$cold@"
TIERS_SUFFIX = "$tiers="
TOPIC_PROPERTY = "pulsar.topic"
"""The property of a view with its topic's full name."""


def plain_topic(namespace: str, name: str) -> Topic:
    """Without suffixes. Raises NotFoundError for what is none."""
    tenant, _, local = (namespace or DEFAULT_NAMESPACE).partition("/")
    if not tenant or not local or "/" in local or not name:
        raise NotFoundError(f"{namespace}/{name} is not a topic", hint="write tenant/namespace")
    return Topic(tenant, local, name)
