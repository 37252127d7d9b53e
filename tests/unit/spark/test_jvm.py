"""A JVM that does not start."""

import os
import subprocess
import sys

import pytest

_PROGRAM = """
from pyspark import SparkConf
from reader.errors import ConfigurationError
from spark_ext.session.jvm import launch_jvm
conf = SparkConf().set("spark.driver.defaultJavaOptions", "-XX:+UseSerialGC")
try:
    launch_jvm(conf, {}, quiet=True)
except ConfigurationError as error:
    print(error.message)
"""


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("-XX:NoSuchOption", "Error: A fatal exception has occurred. Program will exit."),
        ("-XX:+UseParallelGC", "Java gateway process exited before sending its port number."),
    ],
)
def test_the_reason_is_not_what_java_was_given(option: str, reason: str) -> None:
    """It says its options last, which may be secret; that it has two collectors it tells stdout."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, "JAVA_TOOL_OPTIONS": f"{option}\n-Dpassword=secret"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    said = done.stdout.splitlines()[-1]
    assert said.startswith("Spark's JVM does not start: ")
    assert said.endswith(reason)
