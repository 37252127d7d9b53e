"""The Java client: random classes (POJOs) that `Schema.JSON` and `Schema.AVRO` describe themselves.

The classes are generated as source, and compiled together with `java/Client.java`.
"""

import random
import subprocess
import tempfile
from pathlib import Path

from testbed.clients.messages import ClientTopic, topics_of
from testbed.server import config
from testbed.server.jars import server_jars

_SOURCE = Path(__file__).parent / "java" / "Client.java"
_PRIMITIVES = ("boolean", "byte", "short", "int", "long", "float", "double")
_OBJECTS = (
    "Boolean", "Integer", "Long", "Float", "Double", "String", "byte[]", "BigInteger",
    "BigDecimal", "UUID", "Instant", "LocalDate", "LocalTime", "LocalDateTime",
)  # fmt: skip
# Avro's reflection cannot write their fields.
_JSON_ONLY = ("Object", "Date")


def java_topics(
    seed: int, schemas: int, messages: int, service_url: str = "", prefix: str = ""
) -> list[ClientTopic]:
    """Return `schemas` random topics of `messages` messages each, JSON and AVRO in turn.

    service_url: also send the messages, each topic's to `prefix` and the topic's number.
    Raises CalledProcessError if the classes do not compile, or the client fails.
    """
    maker = _Maker(random.Random(seed))
    asked = []
    for number in range(schemas):
        kind = ("JSON", "AVRO")[number % 2]
        asked.append(f"{kind}:Generated${maker.record(2, json=kind == 'JSON')}")
    jars = server_jars()
    with tempfile.TemporaryDirectory(prefix="pulsar-lake-java-client-") as name:
        folder = Path(name)
        source = folder / "Generated.java"
        source.write_text(maker.source())
        command = config.jvm(
            jars,
            folder,
            "Client",
            *[str(seed), str(messages), service_url, prefix, *asked],
            memory="-Xmx256m",
            short_lived=True,
        )
        config.write(
            folder / "log4j2.properties",
            {**config.log4j("ERROR"), "appender.console.target": "SYSTEM_ERR"},
        )
        # The compiler stands beside the JVM that runs the client.
        compiler = str(Path(command[0]).with_name("javac"))
        subprocess.run(
            [compiler, "-nowarn", "-proc:none", "-d", name, "-cp", f"{jars}/*", source, _SOURCE],
            check=True,
        )
        command[command.index("-cp") + 1] += f":{name}"
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return topics_of(done.stdout.split("\n"))


class _Maker:
    """Random classes as Java source."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._classes: list[str] = []
        self._names = 0

    def source(self) -> str:
        """Return one file: a class that has all others as static members."""
        imports = "import java.math.*;\nimport java.time.*;\nimport java.util.*;\n"
        return f"{imports}public class Generated {{\n{''.join(self._classes)}}}\n"

    def record(self, depth: int, *, json: bool) -> str:
        """Add a class, and those of its fields; return its name."""
        name = self._name("R")
        count = self._chance.randint(1, 6)
        fields = [
            f"public {self._member(depth, json)} {self._field(number)};\n"
            for number in range(count)
        ]
        self._classes.append(f"public static class {name} {{\n{''.join(fields)}}}\n")
        return name

    def _name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def _field(self, number: int) -> str:
        return self._chance.choice(["field", "someField", "URL", "x_"]) + str(number)

    def _member(self, depth: int, json: bool) -> str:
        if self._chance.random() < 0.3:
            return self._chance.choice(_PRIMITIVES)
        return self._object(depth, json)

    def _object(self, depth: int, json: bool) -> str:
        choice = self._chance.randint(0, 9) if depth else 9
        if choice == 0:
            return self.record(depth - 1, json=json)
        if choice == 1:
            return f"List<{self._object(depth - 1, json)}>"
        if choice == 2:
            # Avro's reflection refuses an empty map with other keys than text.
            key = self._chance.choice(["String", "Integer", "Long"]) if json else "String"
            # Two of those with generic values can have one name in Avro's reflection.
            value = self._object(depth - 1 if key == "String" else 0, json)
            return f"Map<{key}, {value}>"
        if choice == 3:
            return self._chance.choice(["int[]", "String[]", "double[]"])
        if choice == 4:
            name = self._name("E")
            self._classes.append(f"public enum {name} {{ RED, GREEN, BLUE }}\n")
            return name
        return self._chance.choice((*_OBJECTS, *_JSON_ONLY) if json else _OBJECTS)
