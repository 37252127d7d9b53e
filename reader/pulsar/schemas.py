"""A topic's schemas: the REST API's v2 ``schemas``."""

from __future__ import annotations

from urllib.parse import quote

from reader.errors import NotFoundError
from reader.model import SchemaInfo, Topic
from reader.pulsar.http import AdminPart

__all__ = ["SchemaRequests"]


class SchemaRequests(AdminPart):
    """Which schemas a topic has had."""

    def schemas(self, topic: Topic) -> tuple[SchemaInfo, ...]:
        """All versions of the topic's schema, ascending; () where there is none."""
        # Of this endpoint alone Pulsar (4.2) decodes the topic's name twice: "a+b" would be "a b".
        tenant, namespace, name = topic.rest_path.split("/")
        path = f"/admin/v2/schemas/{tenant}/{namespace}/{quote(name, safe='')}/schemas"
        try:
            answer = self.http.get(path, f"the schemas of {topic}")
        except NotFoundError:
            return ()
        return tuple(
            sorted(
                (
                    SchemaInfo(
                        int(one["version"]),
                        str(one["type"]).upper(),
                        str(one.get("data") or ""),
                        dict(one.get("properties") or {}),
                    )
                    for one in answer.get("getSchemaResponses", [])
                    if one["type"] != "DELETE"
                ),
                key=lambda schema: schema.version,
            )
        )
