"""A catalogue that has rotted fails: each text is there once, and each test is there."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.mutations.catalogue import CATALOGUE
from tests.mutations.mutation import Mutation, MutationError, mutated

_ROOT = Path(__file__).parents[3]
_SERVERLESS = ("tests/unit/", "tests/simulation/", "tests/maintenance/")
_LEAST = 48


@pytest.mark.parametrize("mutation", CATALOGUE, ids=lambda one: one.id)
def test_a_mutation_fits_its_file(mutation: Mutation) -> None:
    text = mutated(mutation, _ROOT)
    assert mutation.old != mutation.new
    ast.parse(text)  # a file that is no Python any more is found by anything


@pytest.mark.parametrize("mutation", CATALOGUE, ids=lambda one: one.id)
def test_the_tests_that_a_mutation_names_are_there(mutation: Mutation) -> None:
    assert mutation.tests or mutation.server_tests
    for name in (*mutation.tests, *mutation.server_tests):
        path, _, test = name.partition("::")
        assert (_ROOT / path).exists(), name
        if test:
            assert f"def {test.partition('[')[0]}(" in (_ROOT / path).read_text(), name
    assert all(f"{name}/".startswith(_SERVERLESS) for name in mutation.tests)


def test_there_are_many_of_different_names() -> None:
    assert len(CATALOGUE) >= _LEAST
    assert [name for name, count in Counter(one.id for one in CATALOGUE).items() if count > 1] == []


@pytest.mark.parametrize("text", ["", "one two", "one one"])
def test_a_text_that_is_not_there_once_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "some.py").write_text(text)
    mutation = Mutation("some", "some.py", "one", "1", "nothing")
    if text.count("one") == 1:
        assert mutated(mutation, tmp_path) == "1 two"
        return
    with pytest.raises(MutationError, match=r"some: some\.py contains the old text \d times"):
        mutated(mutation, tmp_path)
