"""Findings as annotations: GitHub's workflow commands and GitLab's Code Quality report."""

import json
import re
from collections.abc import Callable

import jsonschema
import pytest

from khms.cli.annotate import print_annotations
from khms.model.finding import Finding

# GitLab's documented form of a report's entries.
QUALITY = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": r"^(?!\./|/)"},
                    "lines": {"properties": {"begin": {"type": "integer", "minimum": 1}}, "required": ["begin"]},
                },
            },
        },
    },
}


def finding(message: str = "it is wrong", *, path: str = "memory/know/K-00001.md", **more: object) -> Finding:
    values = {"code": "KH001", "severity": "error", "path": path, "line": 4, "message": message, "mend": "mend it"}
    return Finding(**{**values, **more})  # type: ignore[arg-type]


def understood(line: str) -> tuple[str, dict[str, str], str]:
    """What GitHub's runner reads in a line, as its ActionCommand does."""

    def plain(text: str, codes: str) -> str:
        for code in codes.split():
            text = text.replace(code, chr(int(code[1:], 16)))
        return text.replace("%25", "%")

    found = re.fullmatch(r"::(\w+)(?: (.*?))?::(.*)", line)
    assert found, line
    pairs = [pair.partition("=") for pair in found[2].split(",")]
    return (
        found[1],
        {name: plain(value, "%0D %0A %3A %2C") for name, _, value in pairs},
        plain(found[3], "%0D %0A"),
    )


def printed(capsys: pytest.CaptureFixture[str], *findings: Finding, style: str = "github") -> str:
    print_annotations(findings, style, ".memory/")
    return capsys.readouterr().out


def test_a_command_of_github(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, finding())
    assert out == "::error file=.memory/memory/know/K-00001.md,line=4,title=KH001::it is wrong%0Amend it\n"
    out = printed(capsys, finding(line=0, mend="", severity="warning"))
    assert out == "::warning file=.memory/memory/know/K-00001.md,title=KH001::it is wrong\n"


def test_errors_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    """GitHub shows ten of each a step; the order among equals is kept."""
    mixed = [finding(f"{i}", severity="warning" if i % 3 else "error") for i in range(30)]
    kinds = [understood(line) for line in printed(capsys, *mixed).splitlines()]
    assert [kind for kind, _, _ in kinds] == ["error"] * 10 + ["warning"] * 20
    assert [text.split("\n")[0] for _, _, text in kinds[:3]] == ["0", "3", "6"]


HOSTILE = (
    "a:b,c%0A::error::x",
    "100%",
    "a\n::warning::forged",
    "x\r\n::stop-commands::t",
    "a::b",
    "a\u2028b",
    "\x1b[31m",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_forges_a_command(capsys: pytest.CaptureFixture[str], text: str) -> None:
    out = printed(capsys, finding(text, path=text, mend=text))
    assert out.endswith("\n") and len(re.split(r"[\r\n]", out)) == 2 and "\x1b" not in out
    kind, place, told = understood(out.rstrip("\n"))
    assert kind == "error" and list(place) == ["file", "line", "title"] and place["title"] == "KH001"
    if text.isprintable():
        assert place["file"] == ".memory/" + text and told == f"{text}\n{text}"


def test_a_report_of_gitlab(capsys: pytest.CaptureFixture[str]) -> None:
    twice = [
        finding("same"),
        finding("same", line=9),
        finding("other", line=0, severity="warning"),
        finding(HOSTILE[2]),
    ]
    print_annotations(twice, "gitlab", ".memory/")
    told = capsys.readouterr()
    report = json.loads(told.out)
    jsonschema.validate(report, QUALITY)
    assert [entry["severity"] for entry in report] == ["critical"] * 3 + ["minor"]
    assert report[0]["location"] == {"path": ".memory/memory/know/K-00001.md", "lines": {"begin": 4}}
    assert len({entry["fingerprint"] for entry in report}) == 4
    assert ".memory/memory/know/K-00001.md:4: KH001 same (mend it)" in told.err.splitlines()
    print_annotations([finding("same", line=77)], "gitlab", ".memory/")
    moved = json.loads(capsys.readouterr().out)
    assert moved[0]["fingerprint"] == report[0]["fingerprint"], "a finding that moves is the same finding"


def test_nothing_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys) == ""
    assert json.loads(printed(capsys, style="gitlab")) == []


def test_lint_annotates(base, add_card: Callable[..., object], git, run_khms) -> None:
    add_card(base, "K-00001", level="obs")
    done = run_khms("lint", "--annotate", "github")
    assert done.returncode == 1
    kinds = [understood(line) for line in done.stdout.splitlines()]
    assert kinds[0][0] == "error" and kinds[0][1] == {"file": "memory/know/K-00001.md", "line": "4", "title": "KH001"}
    done = run_khms("lint", "--annotate", "gitlab")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    jsonschema.validate(report, QUALITY)
    assert report[0]["location"]["path"] == "memory/know/K-00001.md"
    (base.root / "memory/know/K-00001.md").unlink()
    assert run_khms("lint", "--annotate", "github").stdout == ""
    done = run_khms("lint", "--annotate", "github", "--json")
    assert done.returncode == 2 and "--annotate and --json" in done.stderr


def test_paths_count_from_the_repository(tmp_path, add_card, git, run_khms) -> None:
    from khms.store.layout import Base

    git(tmp_path, "init", "--quiet", "project")
    base = Base(tmp_path / "project/.memory")
    add_card(base, "K-00001", level="obs")
    (base.root / "khms.toml").touch()
    done = run_khms("--root", base.root, "lint", "--annotate", "github")
    assert done.returncode == 1 and "file=.memory/memory/know/K-00001.md,line=4," in done.stdout


def test_a_name_that_no_encoding_knows(base, write, run_khms) -> None:
    """A file name of bytes that are no UTF-8 must not end the run with a traceback."""
    import os

    (base.root / "memory/know").mkdir(parents=True, exist_ok=True)
    with open(os.fsencode(base.root / "memory/know") + b"/K-\xff.md", "wb") as file:
        file.write(b"---\nid: K-00001\n---\n")
    for style in ("github", "gitlab"):
        done = run_khms("lint", "--annotate", style)
        assert done.returncode == 1 and "Traceback" not in done.stderr and "K-" in done.stdout, style
