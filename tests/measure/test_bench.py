"""`khms bench`: which rows are measured, and that each is reported whatever its figure."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from khms.errors import Unavailable, Usage
from khms.measure import bench
from khms.measure.row import Figure, Measure, Row
from khms.measure.stand import Stand


def names(asked: tuple[str, ...]) -> list[str]:
    return [figure.name for measure in bench.chosen(asked) for figure in measure.figures]


def test_a_row_is_asked_for_by_its_name_or_its_beginning() -> None:
    assert names(("hook-cold",)) == ["hook-cold"]
    assert names(("hook",)) == ["hook-warm", "hook-warm-p95", "hook-cold", "hook-gated", "hook-gated-cold"]
    assert names(("disk", "mark")) == ["disk", "mark"]
    assert len(names(())) == len(set(names(()))) > 20


def test_an_unknown_row_is_a_usage_error_that_names_the_known_ones() -> None:
    with pytest.raises(Usage, match="there is no row 'hoo'") as told:
        bench.chosen(("mark", "hoo"))
    assert "hook-warm" in told.value.hint


def test_a_limit_may_depend_on_the_size() -> None:
    figure = Figure("query", "a question", "ms", (4.0, 14.0))
    assert (figure.limit_for(10_000), figure.limit_for(100_000)) == (4.0, 14.0)
    assert Figure("mark", "mark", "P", 6.0).limit_for(100_000) == 6.0


def test_a_row_is_reached_up_to_its_limit() -> None:
    row = Row("mark", "khms mark", 6.0, 6.0, "P")
    assert row.reached
    assert not Row("mark", "khms mark", 6.1, 6.0, "P").reached
    assert not Row("mark", "khms mark", None, 6.0, "P", "no reason").reached


def test_what_cannot_be_measured_is_a_row_that_says_so(tmp_path: Path) -> None:
    def fail(stand: Stand) -> tuple[float, float]:
        raise Unavailable("this system has none")

    measure = Measure((Figure("a", "A", "s", 1.0), Figure("b", "B", "s", 1.0)), fail)
    rows = list(bench._rows(measure, Stand(tmp_path, 1, 50)))
    assert [(row.value, row.note) for row in rows] == [(None, "this system has none")] * 2


@pytest.mark.parametrize("asked", [("disk", "recall-cold", "mark"), ("query", "memory", "hook-warm"), ("refresh",)])
def test_the_command_reports_and_ends_well(
    run_khms: Callable[..., Any], tmp_path: Path, asked: tuple[str, ...]
) -> None:
    done = run_khms("bench", *asked, "--cards", "60", "--runs", "1", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["schema"] == "khms.bench/1" and told["cards"] == 60 and told["bare_ms"] > 0
    assert {row["name"] for row in told["rows"]} == set(names(asked))
    assert all(row["value"] > 0 for row in told["rows"]), told["rows"]
    assert {"khms", "Python", "git"} <= told["versions"].keys() and len(told["load"]) == 2
