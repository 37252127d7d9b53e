"""Fetches files of a Maven repository with the Ivy that pyspark ships: Java is enough.

Ivy knows the default repository. Java's options (``JAVA_TOOL_OPTIONS``) may name a proxy or a trust
store.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from spark_ext.session.jars.jar_list import Jar
from spark_ext.session.jars.shim import java_lines, java_tool, pyspark_jars

_MODULE = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="io.pulsarlake" module="jars"/>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""
# The file alone: jars.lock lists what the file needs. "master" is the file that a pom describes.
_DEPENDENCY = """\
    <dependency org={org} name={name} rev={rev} transitive="false" conf="default->master(default)">
      <artifact name={name} type="jar" ext="jar"{classifier}/>
    </dependency>"""
_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="repository"/>
  <property name="ivy.checksums" value=""/>
  <timeout-constraints>
    <timeout-constraint name="patient" connectionTimeout="10000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="repository"{root} m2compatible="true" usepoms="false" useMavenMetadata="false"
        timeoutConstraint="patient"/>
  </resolvers>
</ivysettings>
"""


def retrieve(jars: Sequence[Jar], folder: Path, mirror: str) -> str:
    """Fetch jars into ``folder``. Return "", or one line that says why a jar is missing.

    ``mirror``: URL of the Maven repository, or "" for the one that Ivy knows. Raises
    ConfigurationError without Java.
    """
    java = java_tool("java", "install a Java runtime (17 or newer)")
    folder.mkdir(exist_ok=True)
    dependencies = "\n".join(map(_dependency, jars))
    (folder / "ivy.xml").write_text(_MODULE.format(dependencies=dependencies))
    root = f" root={quoteattr(mirror)}" if mirror else ""
    (folder / "settings.xml").write_text(_SETTINGS.format(root=root))
    [ivy] = pyspark_jars().glob("ivy-*.jar")
    # It runs for seconds: Java's second compiler would take longer than it saves. No collector is
    # named, because Java refuses a second one, and JAVA_TOOL_OPTIONS may name the first.
    command = [java, "-XX:TieredStopAtLevel=1", "-cp", str(ivy), "org.apache.ivy.Main"]
    command += ["-settings", str(folder / "settings.xml"), "-cache", str(folder / "cache")]
    command += ["-ivy", str(folder / "ivy.xml"), "-retrieve"]
    command += [str(folder / "[artifact]-[revision](-[classifier]).[ext]")]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return _reason(java_lines(done.stdout)) if done.returncode else ""


def _dependency(jar: Jar) -> str:
    classifier = f" m:classifier={quoteattr(jar.classifier)}" if jar.classifier else ""
    return _DEPENDENCY.format(
        org=quoteattr(jar.organisation),
        name=quoteattr(jar.artifact),
        rev=quoteattr(jar.version),
        classifier=classifier,
    )


def _reason(lines: Sequence[str]) -> str:
    """Return the most telling line of Ivy's output: about a server, or else about a file."""
    for telling in (" url", "[FAILED", "not found", ""):
        for line in lines:
            if telling in line:
                return line
    return "no output"
