"""The report: figures from what was found, and a file from the figures."""

import copy
from typing import Any

from bench import figures, report
from bench.contest import Tool
from bench.sets import CHAT, Document, Question, Task

ONE, TWO = Tool("itself", "khms", "hybrid"), Tool("qmd", "another")
TALK = Question("q1", "1", "who", frozenset(["d1"]))
TRICK = Question("q2", "5", "what", frozenset(["d2"]))
FIRST = Task(CHAT, "talk-1", (Document("d1", "x"), Document("d2", "y")), (TALK, TRICK))
SECOND = Task(CHAT, "talk-2", FIRST.documents, (TALK,))
FOUND: dict[tuple[str, str], dict[str, Any]] = {
    (ONE.name, "chat.talk-1"): {"found": {"q1": ["d1"], "q2": []}},
    (ONE.name, "chat.talk-2"): {"found": {"q1": []}},
    (TWO.name, "chat.talk-1"): {"found": {"q1": ["d2", "d1"], "q2": ["d2"]}},
    (TWO.name, "chat.talk-2"): {"problem": "not done within 5 s"},
}
FINAL: dict[str, Any] = {
    "date": "2026-05-01",
    "speed": [
        {
            "cards": 10_000,
            "runs": 5,
            "bare_ms": 9.5,
            "machine": "2 cores",
            "rows": [
                {"what": "khms mark", "value": 4.0, "unit": "P", "limit": 6.0, "reached": True, "note": None},
                {"what": "memory", "value": None, "unit": "MiB", "limit": 110.0, "reached": False, "note": "no | way"},
            ],
        }
    ],
    "answers": list(figures.answers([ONE], [FIRST, SECOND], FOUND)),
    "silence": {"cards, everyday": 90.0},
    "beside": figures.beside([ONE, TWO], [FIRST, SECOND], FOUND),
    "times": [
        {"label": "khms", "whole_ms": 51.2, "whole_p": 5.1, "warm_ms": 3.3, "index_s": 0.5, "size": None},
        {"label": "another", "whole_ms": 2001.0, "whole_p": 200.1, "warm_ms": 30.0, "index_s": 9.0, "size": 2**30},
    ],
    "how": [{"name": "khms", "version": "1", "licence": "MIT", "how": "khms recall"}],
    "missing": list(figures.missing([ONE, TWO], FOUND, {})),
}


def test_a_tool_is_scored_over_the_tasks_it_went_through() -> None:
    (row,) = figures.answers([ONE], [FIRST, SECOND], FOUND)
    assert row["on"] == ["talk-1", "talk-2"] and (row["asked"], row["apart"]) == (2, 1)
    assert row["figures"]["recall@5"] == 50  # of the two that are not adversarial
    assert row["figures"]["adversarial recall@5"] == 0


def test_tools_stand_beside_each_other_on_what_both_were_asked() -> None:
    rows = figures.beside([ONE, TWO], [FIRST, SECOND], FOUND)
    assert [(row["label"], row["on"], row["figures"]["recall@5"]) for row in rows] == [
        ("khms", ["talk-1"], 100),
        ("another", ["talk-1"], 100),
    ]


def test_what_failed_is_told() -> None:
    problems = {TWO.name: "cannot be installed"}
    told = list(figures.missing([ONE, TWO], FOUND, problems))
    assert [(one["label"], one["what"], one["why"]) for one in told] == [
        ("another", "the whole", "cannot be installed"),
        ("another", "chat.talk-2", "not done within 5 s"),
    ]


def test_the_same_figures_are_the_same_bytes() -> None:
    assert report.render(FINAL) == report.render(copy.deepcopy(FINAL))


def test_every_figure_is_in_the_file() -> None:
    text = report.render(FINAL)
    assert "| khms mark | 4.00 P | 6 P | reached |" in text
    assert "| memory | not measured | 110 MiB | no \\| way |" in text
    assert "2 questions and 1 adversarial ones to 2 conversations." in text
    assert "| another | 2,001 | 200.1 | 30.0 | 9.0 | 1,024 |" in text
    assert "| khms | 51 | 5.1 | 3.3 | 0.5 | - |" in text
    assert "- another, chat.talk-2: not done within 5 s." in text
    assert "| cards, everyday | 90.0 |" in text
    assert text.endswith("\n") and "\n\n\n" not in text


def test_a_table_has_as_many_cells_in_every_line() -> None:
    lines = [line for line in report.render(FINAL).splitlines() if line.startswith("|")]
    block: list[int] = []
    for line in lines:
        cells = line.replace("\\|", "").count("|")
        block = [cells] if "---" not in line and not block else [*block, cells]
    heads = [number for number, line in enumerate(lines) if line.startswith("| ---")]
    assert all(lines[at - 1].count("|") == lines[at].count("|") for at in heads)


def test_without_figures_there_is_still_a_file() -> None:
    empty = {key: type(value)() for key, value in FINAL.items()}
    assert report.render(empty | {"date": "2026-05-01"}).startswith("# Benchmarks\n")
