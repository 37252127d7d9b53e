"""Another Spark, with Iceberg's runtime, for all files of this folder."""

from collections.abc import Iterator

import pytest

from tests.iceberg.engines import SparkEngine


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkEngine]:
    with SparkEngine(tmp_path_factory.mktemp("spark") / "log") as started:
        yield started
