"""Which names are the same name for Spark: compared with Java's own methods for all of Unicode."""

import subprocess
import sys
from pathlib import Path

import pytest

from reader.model.column_names import ColumnNames, free_name, name_key, same_name
from reader.model.columns import metadata_name

# Prints: the letters that Java's Unicode version does not have; pairs of letters, of all that have
# another case or that share a key, for which equalsIgnoreCase and the keys disagree; and each
# letter whose toLowerCase is another text, with that text.
JAVA = """
import java.nio.file.*;
import java.util.*;
public class Names {
  public static void main(String[] paths) throws Exception {
    List<String> keys = Files.readAllLines(Path.of(paths[0]));
    StringBuilder out = new StringBuilder();
    List<String> letters = new ArrayList<>(), theirs = new ArrayList<>();
    int at = 0;
    for (int code = 0; code <= 0x10FFFF; code++) {
      if (code >= 0xD800 && code < 0xE000) continue;
      String key = keys.get(at++), letter = Character.toString(code);
      if (code == 10 || code == 13) continue;
      if (!Character.isDefined(code)) { out.append("undefined " + code + "\\n"); continue; }
      int folded = Character.toLowerCase(Character.toUpperCase(code));
      if (folded != code || !key.equals(letter) || Character.toUpperCase(code) != code
          || Character.toLowerCase(code) != code) { letters.add(letter); theirs.add(key); }
      if (!letter.toLowerCase(Locale.ROOT).equals(letter))
        out.append("lower " + code + " " + letter.toLowerCase(Locale.ROOT) + "\\n");
    }
    for (int i = 0; i < letters.size(); i++)
      for (int j = 0; j <= i; j++)
        if (letters.get(i).equalsIgnoreCase(letters.get(j)) != theirs.get(i).equals(theirs.get(j)))
          out.append("wrong " + letters.get(i) + " " + letters.get(j) + "\\n");
    out.append("letters " + letters.size() + "\\n");
    Files.writeString(Path.of(paths[1]), out.toString());
  }
}
"""


@pytest.mark.long  # two seconds of Java
def test_names_are_the_same_exactly_if_they_are_for_java(tmp_path: Path) -> None:
    codes = (code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)
    letters = [chr(code) for code in codes]
    keys = [name_key(letter) for letter in letters]
    (tmp_path / "Names.java").write_text(JAVA)
    (tmp_path / "keys").write_text(
        "\n".join(
            " " if letter in "\n\r" else key for letter, key in zip(letters, keys, strict=True)
        )
    )
    paths = [str(tmp_path / name) for name in ("Names.java", "keys", "out")]
    subprocess.run(["java", *paths], check=True)
    facts = [line.split(" ") for line in (tmp_path / "out").read_text().split("\n")[:-1]]
    assert [fact for fact in facts if fact[0] == "wrong"] == []
    assert int(facts[-1][1]) > 2_700  # compared with each other
    for _, code, lower in (fact for fact in facts if fact[0] == "lower"):
        assert same_name(chr(int(code)), lower)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("kis", "k\u0131s"),
        ("kis", "KIS"),
        ("kis", "KİS"),
        ("i\u0307", "İ"),  # for toLowerCase, which Parquet's columns are found by
        ("s", "\u017f"),
        ("k", "K"),  # the sign of Kelvin
        ("ΟΔΟΣ", "οδος"),
        ("µ", "μ"),  # micro, mu
        ("ẞ", "ß"),
        ("ᾳ", "ᾼ"),
        ("𐐀", "𐐨"),
        ("ɤ", "\ua7cb"),  # a capital letter since Unicode 16
    ],
)
def test_same_names(name: str, other: str) -> None:
    assert same_name(name, other)
    assert free_name(other, [name]) == other + "_2"


@pytest.mark.parametrize(
    ("name", "other"),
    [("straße", "STRASSE"), ("ŉ", "\u02bcN"), ("é", "e"), ("é", "e\u0301"), ("ﬁ", "fi")],
)
def test_other_names(name: str, other: str) -> None:
    assert not same_name(name, other)
    assert free_name(other, [name]) == other


def test_names_with_numbers_are_taken_as_well() -> None:
    columns = ColumnNames(["kis_2"])
    assert [columns.add(name) for name in ("k\u0131s", "KIS", "kis")] == [
        "k\u0131s",
        "KIS_3",
        "kis_4",
    ]


def test_metadata_columns_are_found_as_spark_finds_them() -> None:
    assert metadata_name("__PARTITION") == metadata_name("__part\u0131tion") == "__partition"
    assert metadata_name("partition") is None
