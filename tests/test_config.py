"""The table of settings: what a value may be, and how one that may not is refused."""

from pathlib import Path

import pytest

from khms import config, options
from khms.errors import Refused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[recall]\nlimit = -5\n", "from 1 to 1000"),
        ("[hooks]\ndeadline_ms = 0\n", "from 50 to"),
        ("[hooks]\nprompt_threshold = 7.0\n", "from 0 to 1"),
        ("[hooks]\nedit_threshold = nan\n", "from 0 to 1"),
        ("[hooks]\nwindow_minutes = 0\n", "at least 1"),
        ('[index]\nlanguage = "klingon"\n', "english"),
    ],
)
def test_a_value_out_of_range_names_file_value_and_range(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "khms.toml").write_text(text, encoding="utf-8")
    value = text.split("= ")[1].strip().strip('"')
    with pytest.raises(Refused) as refused:
        config.load(tmp_path)
    assert refused.value.where == str(tmp_path / "khms.toml")
    assert value in refused.value.message and said in refused.value.hint


def test_every_default_is_in_its_range() -> None:
    for option in options.OPTIONS:
        assert option.takes(option.default), option.name
        figure = isinstance(option.default, (int, float)) and not isinstance(option.default, bool)
        assert figure == (option.least is not None), option.name


def test_the_edges_of_a_range_are_in_it(tmp_path: Path) -> None:
    text = "[hooks]\nprompt_threshold = 1\ncards = 0\n[nightly]\nmax_cards = 0\n[recall]\nlimit = 1000\n"
    (tmp_path / "khms.toml").write_text(text, encoding="utf-8")
    held = config.load(tmp_path)
    assert (held["hooks.prompt_threshold"], held["nightly.max_cards"], held["recall.limit"]) == (1.0, 0, 1000)


def test_a_table_with_entries_of_its_own_is_added_to_and_any_other_replaced() -> None:
    mine, theirs = {"a": {"patterns": ["x"]}}, {"delete": {"patterns": []}, "b": {"tags": ["t"]}}
    held = config.Config([("user", {"precheck.classes": mine}), ("base", {"precheck.classes": theirs})])
    assert held["precheck.classes"] == {**options.COMMAND_CLASSES, **mine, **theirs}
    assert "a" not in options.COMMAND_CLASSES and held.origin("precheck.classes") == "base"
    held = config.Config([("user", {"index.include": {"a": "x"}}), ("base", {"index.include": {"b": "y"}})])
    assert held["index.include"] == {"b": "y"}
