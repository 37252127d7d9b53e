"""README and docs/: the sample settings name every key, and relative links lead somewhere."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pydantic import BaseModel

from offloader.config import Config, load_config
from reader.config import TieredConfig
from reader.model.columns import BROKER_NULLS, METADATA_NAMES

pytestmark = pytest.mark.usefixtures("no_environment")

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs" / "example.toml"
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])

# What has no default that would be of use.
CHOSEN = {("storage", "uri"), ("offload", "topics")}
_COMMENTED_KEY = re.compile(r'^# ((?:[a-z_]+|"[^"]+") = .+|\[\[.+\]\])$', re.MULTILINE)
_LINK = re.compile(r'\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"')


def keys() -> Iterator[tuple[str, str, Any]]:
    """(section, key, default) of every setting, but of sections that there may be many of."""
    for section, field in Config.model_fields.items():
        model: Any = field.annotation
        if section == "tiered":
            continue
        assert issubclass(model, BaseModel)
        for key, inner in model.model_fields.items():
            yield section, key, inner.get_default(call_default_factory=True)


def uncommented() -> str:
    return _COMMENTED_KEY.sub(r"\1", EXAMPLE.read_text())


def test_the_sample_names_every_key() -> None:
    named = tomllib.loads(uncommented())
    missing = [f"{section}.{key}" for section, key, _ in keys() if key not in named[section]]
    assert not missing
    assert {key for one in named["tiered"] for key in one} == set(TieredConfig.model_fields)


def test_the_sample_shows_the_defaults() -> None:
    config = load_config(EXAMPLE)
    for section, key, default in keys():
        if (section, key) not in CHOSEN:
            assert getattr(getattr(config, section), key) == default, f"{section}.{key}"


def test_what_the_sample_leaves_out_is_right_too(tmp_path: Path) -> None:
    file = tmp_path / "all.toml"
    file.write_text(uncommented())
    config = load_config(file)
    assert config.query.clock_skew is not None
    assert config.pulsar.bookies == {"bookie-1": "10.0.0.1:3181"}
    assert set(config.storage.options) >= {"endpoint_url", "region", "allow_http", "path_style"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_resolve(page: Path) -> None:
    for found in _LINK.finditer(page.read_text()):
        target = found[1] or found[2]
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), target
        if anchor:
            assert anchor in _anchors(file), target


def _anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub names them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_there_are_pages_and_the_pattern_finds_their_links() -> None:
    assert len(PAGES) > 5
    assert len(list(_LINK.finditer((ROOT / "README.md").read_text()))) > 5


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 1500


def test_columns_page_lists_every_metadata_column() -> None:
    text = (ROOT / "docs" / "columns.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `__")]
    listed = [name for row in rows for name in re.findall(r"`(__\w+)`", row.split("|")[1])]
    assert listed == list(METADATA_NAMES)
    null = {
        name
        for row in rows
        if "NULL through the broker" in row
        for name in re.findall(r"`(__\w+)`", row.split("|")[1])
    }
    assert null == set(BROKER_NULLS)


def test_the_picture_is_xml() -> None:
    root = ElementTree.parse(ROOT / "docs" / "design.svg").getroot()
    assert root.tag.endswith("}svg")
    assert root.get("viewBox")
