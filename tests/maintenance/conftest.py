"""Where the tables of these tests are: in a local directory, or on a server."""

import uuid
from pathlib import Path

import pytest

from reader.config import StorageConfig
from reader.storage import Storage, open_storage

in_each_place = pytest.mark.parametrize("storage", ["directory", "server"], indirect=True)
"""For what depends on the storage: the conditional put of a commit, a server's listing."""


@pytest.fixture
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """An empty storage: a local directory, or with ``--storage`` a prefix on that server."""
    chosen = "directory" if request.config.getoption("--storage") == "moto" else "server"
    if getattr(request, "param", chosen) == "directory":
        return open_storage(StorageConfig(uri=str(tmp_path / "lake")))
    server = request.getfixturevalue("s3")
    uri = f"{server.uri}/{uuid.uuid4()}"
    return open_storage(StorageConfig(uri=uri, options=server.storage_options))
