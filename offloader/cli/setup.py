"""``pulsar-lake setup``: what the first query would wait for, beforehand."""

import time
from typing import Annotated

import typer

from offloader.cli.options import ConfigOption, settings
from offloader.cli.render import say
from reader.errors import PulsarLakeError, plain_text
from spark_ext.session.jars import groups_for, jars_folder, listed, missing_jars
from spark_ext.session.jars import session_jars as fetch_jars
from spark_ext.session.settings import LakeConfig


def setup(
    list_jars: Annotated[
        bool, typer.Option("--list", help="Only list the jars: state, SHA-256, coordinates, file.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Fetch the jars for Spark, compile the kernels and archive Spark's classes.

    Jars of the storage that the settings name; of S3 where they name none.
    """
    found = settings(config)
    conf = found.spark.conf
    uri = found.storage.uri
    groups = groups_for(uri, conf, delta=found.spark.delta, any_storage=not uri)
    if list_jars:
        missing = missing_jars(groups)
        for jar in listed(groups):
            state = "missing" if jar in missing else "there"
            say(f"{state:7}  {jar.sha256}  {jar.coordinates}  {jar.file}")
        say(f"{len(missing)} missing in {jars_folder()}", err=True)
        return
    mirror = found.spark.jars_mirror
    jars = fetch_jars(groups, mirror, lambda line: say(line, err=True), again=True)
    say(f"{len(jars)} jars for Spark in {jars_folder()}", err=True)
    began = time.monotonic()
    _compile_kernels()
    say(f"kernels are compiled ({time.monotonic() - began:.0f} s)", err=True)
    if found.spark.class_archive:
        _archive_classes(found)


def _archive_classes(config: LakeConfig) -> None:
    from spark_ext.session.builder import archive_classes

    began = time.monotonic()
    try:
        made = archive_classes(config)
    except (PulsarLakeError, OSError) as error:
        # Sessions start without it, too.
        say(f"Spark's classes are not archived: {plain_text(error)}", err=True)
        return
    took = time.monotonic() - began
    say(f"Spark's classes are archived in {len(made)} files ({took:.0f} s)", err=True)


def _compile_kernels() -> None:
    from reader.bookkeeper import prewarm as prewarm_reads
    from reader.decode import prewarm as prewarm_entries
    from reader.encode.payload import prewarm as prewarm_encoders
    from reader.payload import prewarm as prewarm_payloads
    from reader.pulsar.binary import prewarm as prewarm_frames
    from reader.tiered import prewarm as prewarm_tiered

    prewarm_reads()
    prewarm_entries()
    prewarm_payloads()
    prewarm_encoders()
    prewarm_frames()
    prewarm_tiered()
