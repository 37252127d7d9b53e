"""Patterns of topics, and overrides: which match, which win, which are refused."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from offloader.config import OffloadConfig, load_config
from offloader.model.patterns import is_enabled, matches, settings_of
from reader.errors import ConfigurationError
from reader.model import Topic

ORDERS = Topic("shop", "live", "orders")


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("shop/live/orders", "shop/live/orders", True),
        ("shop/live/*", "shop/live/orders", True),
        ("shop/*/*", "shop/live/orders", True),
        ("*/*/order?", "shop/live/orders", True),
        ("persistent://shop/*/*", "shop/live/orders", True),
        ("shop/l*e/o*s", "shop/live/orders", True),
        ("s*/orders", "shop/live/orders", False),
        ("shop/live/*", "shop/live/a/b", True),
        ("shop/live/order", "shop/live/orders", False),
        ("shop/live/o.ders", "shop/live/orders", False),
        ("shop/live/[o]rders", "shop/live/orders", False),
        ("*", "orders", True),
    ],
)
def test_matches(pattern: str, text: str, expected: bool) -> None:
    assert matches(pattern, text) is expected


def config(*overrides: dict[str, Any]) -> OffloadConfig:
    return load_config({"offload": {"override": list(overrides)}}).offload


def test_the_last_match_wins_key_by_key() -> None:
    found = settings_of(
        config(
            {"topics": "shop/*/*", "threshold_bytes": "5MiB", "max_age": "5m"},
            {"topics": "shop/live/*", "max_age": "1m"},
            {"topics": "other/*/*", "max_age": "9m"},
        ),
        ORDERS,
    )
    assert (found.threshold_bytes, found.max_age) == (5 << 20, timedelta(minutes=1))
    assert found.interval == timedelta(minutes=1), "the default"


def test_topics_are_switched_off_and_on() -> None:
    settings = config(
        {"topics": "shop/*/*", "enabled": False},
        {"topics": "shop/live/orders", "enabled": True},
        {"topics": "shop/live/*", "max_age": "1m"},
    )
    assert is_enabled(settings, ORDERS)
    assert not is_enabled(settings, Topic("shop", "live", "bills"))
    assert is_enabled(settings, Topic("other", "live", "bills"))


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ({"topics": "a/b/*", "treshold_bytes": 1}, "did you mean threshold_bytes"),
        ({"topics": "a/b/*", "source": "broker"}, "unknown key offload.override.0.source"),
        ({"max_age": "1h"}, "offload.override.0.topics"),
        ({"topics": "orders"}, "write tenant/namespace/name"),
        ({"topics": "non-persistent://a/b/c"}, "write tenant/namespace/name"),
        ({"topics": "a/b/*", "max_age": "soon"}, "offload.override.0.max_age"),
    ],
)
def test_what_is_wrong_is_named(override: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        config(override)
    assert says in str(caught.value)


def test_overrides_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "lake.toml"
    path.write_text(
        '[[offload.override]]\ntopics = "shop/*/*"\nenabled = false\n'
        '[[offload.override]]\ntopics = "shop/live/*"\nrollover_after = "2h"\n'
    )
    found = settings_of(load_config(path).offload, ORDERS)
    assert found.rollover_after == timedelta(hours=2)
