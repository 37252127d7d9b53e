"""A folder of Hadoop's configuration: the properties that a client of HDFS goes by.

Format: ``<configuration><property><name>…</name><value>…</value></property></configuration>``, in
``core-site.xml`` and then ``hdfs-site.xml``, as Hadoop's ``Configuration`` reads them.
"""

import re
from pathlib import Path
from xml.etree import ElementTree

from reader.errors import ConfigurationError

_FILES = ("core-site.xml", "hdfs-site.xml")
_OURS = re.compile(r"(dfs|fs|hadoop|ipc)\.")
# Spark shows what it is given, and no client of HDFS needs these.
_SECRET = re.compile("(?i)secret|password|passwd|[.]key$|keystore|truststore|access[.]?key")


def hadoop_properties(folder: str, *, optional: bool = False) -> dict[str, str]:
    """Name → value, but of secrets; of no folder nothing.

    ``optional``: nor of one without the files. Raises ConfigurationError.
    """
    if not folder:
        return {}
    files = [path for name in _FILES if (path := Path(folder).expanduser() / name).is_file()]
    if not files and not optional:
        raise ConfigurationError(
            f"storage.options.conf_dir: {folder} has neither {' nor '.join(_FILES)}"
        )
    found: dict[str, str] = {}
    for path in files:
        try:
            root = ElementTree.parse(path).getroot()
        except (OSError, ElementTree.ParseError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no XML"
            raise ConfigurationError(f"cannot read {path}: {why}") from error
        for one in root.iterfind("property"):
            name, value = (one.findtext(tag, "").strip() for tag in ("name", "value"))
            if _OURS.match(name) and not _SECRET.search(name):
                found[name] = value
    return found
