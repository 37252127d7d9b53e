"""The corpus as a fixture."""

import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from offloader.config import Config
from testbed.admin import Admin
from testbed.oracle import Oracle
from tests.contract.corpus import Kind
from tests.contract.corpus.world import World


@pytest.fixture(scope="session")
def world(
    request: pytest.FixtureRequest,
    oracle: Oracle,
    admin: Admin,
    client: Any,
    contract_config: Config,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    """The published kinds: all that some test of this run asks for."""
    kinds: dict[str, Kind] = {}
    for item in request.session.items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            kind = item.callspec.params.get("kind")
            if isinstance(kind, Kind):
                kinds[kind.name] = kind
    namespace = f"public/corpus-{uuid.uuid4().hex[:8]}"
    admin.create_namespace(namespace)
    folder = tmp_path_factory.mktemp("keys")
    with closing(
        World(namespace, list(kinds.values()), contract_config, oracle, admin, client, folder)
    ) as opened:
        opened.publish()
        opened.expect()
        yield opened
