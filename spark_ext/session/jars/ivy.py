"""Fetches files of Maven repositories with the Ivy that pyspark ships: Java is enough."""

from __future__ import annotations

import re
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from spark_ext.session.jars.jar_list import Jar
from spark_ext.session.jars.repositories import ivy_settings, java_options
from spark_ext.session.jars.shim import java_lines, java_tool, pyspark_jars

__all__ = ["retrieve"]

_MODULE = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="io.pulsarlake" module="jars"/>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""
# The file alone: what it needs is on the list, too. "master" is what a pom is about.
_DEPENDENCY = """\
    <dependency org={org} name={name} rev={rev} transitive="false" conf="default->master(default)">
      <artifact name={name} type="jar" ext="jar"{classifier}/>
    </dependency>"""


def retrieve(
    jars: Sequence[Jar],
    folder: Path,
    conf: Mapping[str, str],
    begun: Callable[[int], None] = lambda count: None,
) -> str:
    """Fetch jars into ``folder``. Return "", or one line that says why not all came.

    ``conf``: Spark's settings, which name repositories. ``begun`` is called with the number of jars
    begun so far.
    Raises ConfigurationError without Java.
    """
    java = java_tool("java", "install a Java runtime (17 or newer)")
    folder.mkdir(exist_ok=True)
    (folder / "ivy.xml").write_text(
        _MODULE.format(
            dependencies="\n".join(
                _DEPENDENCY.format(
                    org=quoteattr(jar.organisation),
                    name=quoteattr(jar.artifact),
                    rev=quoteattr(jar.version),
                    classifier=f" m:classifier={quoteattr(jar.classifier)}"
                    if jar.classifier
                    else "",
                )
                for jar in jars
            )
        )
    )
    [ivy] = pyspark_jars().glob("ivy-*.jar")
    options = folder / "java-options"
    # In a file, because every user of the machine can read command lines.
    options.touch(0o600)
    options.write_text("".join(f"{_quoted(one)}\n" for one in java_options(conf)))
    # It runs for seconds: Java's second compiler would take longer than it saves. No collector is
    # named, because Java refuses a second one, and JAVA_TOOL_OPTIONS may name the first.
    command = [java, "-XX:TieredStopAtLevel=1", f"@{options}"]
    command += ["-cp", str(ivy), "org.apache.ivy.Main"]
    command += ["-settings", str(ivy_settings(conf, folder)), "-cache", str(folder / "cache")]
    command += ["-ivy", str(folder / "ivy.xml"), "-retrieve"]
    command += [str(folder / "[artifact]-[revision](-[classifier]).[ext]")]
    last: deque[str] = deque(maxlen=200)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        count = 0
        try:
            for line in process.stdout:
                last += java_lines(line)
                if line.startswith("downloading "):
                    count += 1
                    begun(count)
        except BaseException:
            process.kill()
            raise
    return _reason(last) if process.returncode else ""


def _quoted(option: str) -> str:
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _reason(lines: Sequence[str]) -> str:
    """Return what Ivy says of a server, else of a file; without a user in a URL."""
    for telling in (" url", "[FAILED", "not found", ""):
        for line in lines:
            if telling in line:
                return re.sub(r"//[^/@\s]*@", "//", line)
    return "no output"
