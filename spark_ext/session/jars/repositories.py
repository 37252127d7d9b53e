"""Where jars may come from: what the user has set up for Spark, Maven and the network.

    spark.jars.ivySettings     a file of Ivy's, which then says everything
    spark.jars.repositories    asked before the default one
    DEFAULT_ARTIFACT_REPOSITORY, or a mirror in Maven's settings   instead of the default one
    https_proxy, no_proxy, …, and Java's own properties in spark.driver.extraJavaOptions,
    SPARK_SUBMIT_OPTS and JAVA_TOOL_OPTIONS   the way there

Spark's settings are those of ``[spark] conf``, else of ``spark-defaults.conf``.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from reader.errors import ConfigurationError
from spark_ext.session.jars.jar_list import Jar
from spark_ext.session.jars.shim import pyspark_jars

__all__ = ["ivy_settings", "java_options", "near_copies", "spark_settings"]

_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="all"/>
  <property name="ivy.checksums" value=""/>
  <timeout-constraints>
    <timeout-constraint name="patient" connectionTimeout="10000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers>
    <chain name="all" returnFirst="true">
{resolvers}
    </chain>
  </resolvers>
</ivysettings>
"""
_RESOLVER = (
    '      <ibiblio name="{name}"{root} m2compatible="true" usepoms="false" '
    'useMavenMetadata="false" timeoutConstraint="patient"/>'
)


def spark_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """``conf`` over what ``spark-defaults.conf`` says."""
    found: dict[str, str] = {}
    folder = os.environ.get("SPARK_CONF_DIR")
    home = os.environ.get("SPARK_HOME") or pyspark_jars().parent
    file = Path(folder) if folder else Path(home, "conf")
    with suppress(OSError):
        for line in (file / "spark-defaults.conf").read_text(errors="replace").splitlines():
            name, _, value = line.strip().replace("=", " ", 1).partition(" ")
            if name and not name.startswith("#"):
                found[name] = value.strip()
    return {**found, **conf}


def ivy_settings(conf: Mapping[str, str], folder: Path) -> Path:
    """The settings that Ivy works by: the user's file, else one written into ``folder``.

    Raises ConfigurationError for a file that is not there.
    """
    given = conf.get("spark.jars.ivySettings", "")
    if given:
        file = Path(unquote(urlsplit(given).path) if given.startswith("file:") else given)
        if not file.is_file():
            raise ConfigurationError(
                f"spark.jars.ivySettings names {given}, which is no file",
                hint="correct it in [spark] conf, or in spark-defaults.conf",
            )
        return file.absolute()
    roots = [one.strip() for one in conf.get("spark.jars.repositories", "").split(",")]
    roots = [*filter(None, roots), os.environ.get("DEFAULT_ARTIFACT_REPOSITORY") or _mirror()]
    # Without a root it is the one that Ivy knows.
    resolvers = "\n".join(
        _RESOLVER.format(name=f"repository-{number}", root=root and f" root={quoteattr(root)}")
        for number, root in enumerate(roots, 1)
    )
    written = folder / "ivysettings.xml"
    written.write_text(_SETTINGS.format(resolvers=resolvers))
    return written


def java_options(conf: Mapping[str, str]) -> list[str]:
    """The properties that say how Java reaches the network; they may have a proxy's password.

    Raises ConfigurationError for what cannot be read.
    """
    found = list(_proxies())
    for name, text in (
        ("SPARK_SUBMIT_OPTS", os.environ.get("SPARK_SUBMIT_OPTS", "")),
        ("spark.driver.extraJavaOptions", conf.get("spark.driver.extraJavaOptions", "")),
    ):
        try:
            options = shlex.split(text)
        except ValueError as error:
            raise ConfigurationError(f"{name} has a quotation mark that is not closed") from error
        found += [one for one in options if one.startswith("-D")]
    return found


def near_copies(jar: Jar, conf: Mapping[str, str]) -> Iterator[Path]:
    """Where the file may be on this machine: Maven's repository, and what Spark fetched by Ivy."""
    yield Path.home() / ".m2" / "repository" / jar.repository_path
    ivy = conf.get("spark.jars.ivy")
    homes = [Path(ivy)] if ivy else [Path.home() / ".ivy2.5.2", Path.home() / ".ivy2"]
    for home in homes:
        yield home / "cache" / jar.organisation / jar.artifact / "jars" / jar.file


def _mirror() -> str:
    """What Maven's settings of the user have in place of the default repository, or ""."""
    try:
        root = ElementTree.parse(Path.home() / ".m2" / "settings.xml").getroot()
    except (OSError, ElementTree.ParseError):
        return ""
    for mirror in root.iterfind("{*}mirrors/{*}mirror"):
        names = [one.strip() for one in mirror.findtext("{*}mirrorOf", "").split(",")]
        if "!central" not in names and {"central", "*", "external:*"} & {*names}:
            return mirror.findtext("{*}url", "").strip()
    return ""


def _proxies() -> Iterator[str]:
    """The environment's proxies, as Java has them."""
    found = getproxies_environment()
    for kind in ("http", "https"):
        text = found.get(kind, "")
        try:
            proxy = urlsplit(text if "://" in text else f"http://{text}")
            port = proxy.port or 80
        except ValueError:  # which shows a part of it: perhaps of a password
            raise ConfigurationError(
                f"the environment's {kind}_proxy is no URL",
                hint="http://host:port; a /, ?, # or @ in a password is written %2F, %3F, %23, %40",
            ) from None
        if not proxy.hostname:
            continue
        yield f"-D{kind}.proxyHost={proxy.hostname}"
        yield f"-D{kind}.proxyPort={port}"
        if proxy.username:  # Ivy asks for these two, whatever the kind
            yield f"-Dhttp.proxyUser={unquote(proxy.username)}"
            yield f"-Dhttp.proxyPassword={unquote(proxy.password or '')}"
            yield "-Djdk.http.auth.tunneling.disabledSchemes="
    direct = [one.strip() for one in found.get("no", "").split(",")]
    hosts = [f"*{one}" if one.startswith(".") else f"{one}|*.{one}" for one in direct if one]
    if hosts:
        yield f"-Dhttp.nonProxyHosts={'|'.join(['localhost', '127.*', '[::1]', *hosts])}"
