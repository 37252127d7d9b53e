"""Spark of the offloader, as it is set up."""

import re
from types import SimpleNamespace

import pytest

from offloader.config import Config, load_config
from offloader.convert import SparkStarter


def test_it_goes_with_any_garbage_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM does not start with two, and JAVA_TOOL_OPTIONS may name one."""
    built: list[Config] = []

    def build(config: Config, *, app_name: str) -> SimpleNamespace:
        built.append(config)
        return SimpleNamespace(sparkContext=SimpleNamespace(cancelAllJobs=lambda: None))

    monkeypatch.setattr("spark_ext.session.builder.build_session", build)
    SparkStarter(load_config(None))()
    options = built[0].spark.conf["spark.driver.defaultJavaOptions"]
    assert "-XX:TieredStopAtLevel=1" in options.split()
    assert not re.search(r"-XX:\+Use\w+GC", options)


def test_jobs_are_canceled_on_the_one_context(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Spark was started there is nothing to cancel."""
    canceled: list[int] = []
    started: list[SimpleNamespace] = []

    def build(config: Config, *, app_name: str) -> SimpleNamespace:
        number = len(started)
        context = SimpleNamespace(cancelAllJobs=lambda: canceled.append(number))
        started.append(SimpleNamespace(sparkContext=context))
        return started[-1]

    monkeypatch.setattr("spark_ext.session.builder.build_session", build)
    spark = SparkStarter(load_config(None))
    spark.cancel()
    assert spark() is spark()
    spark.cancel()
    assert (len(started), canceled) == (1, [0])
