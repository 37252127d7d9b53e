import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from reader.config import StorageConfig
from reader.storage import Storage, open_storage
from testbed.programs import ToolMissingError
from testbed.storages.kinds import storage_server


@pytest.fixture(scope="package", params=["versity", "gcs", "azure", "hdfs"])
def server(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A `StorageServer` of each kind."""
    with ExitStack() as stack:
        try:
            started = stack.enter_context(storage_server(request.param))
        except ToolMissingError as error:
            pytest.skip(str(error))
        yield started


@pytest.fixture
def config(server: Any) -> StorageConfig:
    """A storage of the test's own."""
    return StorageConfig(uri=f"{server.uri}/{uuid.uuid4()}", options=server.storage_options)


@pytest.fixture
def storage(config: StorageConfig) -> Storage:
    return open_storage(config)
