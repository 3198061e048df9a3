"""`khms card` and `khms show`: a person's own proposal, its way in, and looking at what there is."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from khms.store import inbox, journal
from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]
SOURCE = 'journal/2026-03-04.md line 3: "frames failed because a ground was loose"'
FACT = ("card", "new", "fact", "--evidence", "measured", "--body", "-")


def new(run_khms: Run, *args: str, body: str = "A loose ground breaks frames.\n") -> dict[str, object]:
    done = run_khms(*FACT, *args, "--json", input=body)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_a_proposal_waits_in_the_inbox_and_its_command_lets_it_in(
    base: Base, run_khms: Run, git: Callable[..., str]
) -> None:
    title = 'Grounds: check the "ground" first'
    made = new(run_khms, "--title", title, "--source", SOURCE, "--tag", "sensors", "--tag", "yes")
    assert made["schema"] == "khms.card-new/1"
    unit = inbox.find(base, str(made["unit"]))
    (candidate,) = unit.candidates
    assert candidate.title == title and candidate.meta["tags"] == ["sensors", "yes"]
    assert candidate.quotes[0].grade == "EXACT" and unit.meta["proposer"] == "person"
    assert git(base, "status", "--porcelain") == ""
    assert not list(base.know.glob("*.md"))
    done = run_khms(*made["approve"][1:])  # type: ignore[index]
    assert done.returncode == 0, done.stderr
    shown = json.loads(run_khms("show", "K-00001", "--json").stdout)
    assert (shown["title"], shown["kind"], shown["path"]) == (title, "card", "memory/know/K-00001.md")
    assert shown["history"][0]["who"] == "Ada Tester <ada@example.org>"


def test_a_second_one_names_what_is_near_and_gets_its_own_unit(
    base: Base, run_khms: Run, add_card: Callable[..., Path], commit: Callable[..., str]
) -> None:
    add_card(base, "K-00001", title="A loose ground breaks frames on the link")
    commit(base)
    first, second = (new(run_khms, "--title", "Loose ground", "--source", SOURCE) for _ in range(2))
    assert second["unit"] == f"{first['unit']}-2"
    assert first["nearest"] == [{"id": "K-00001", "title": "A loose ground breaks frames on the link"}]


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("somewhere", "KH003"),
        ("journal/1999-01-01.md line 3", "KH003"),
        ("journal/2026-03-04.md line 999", "KH003"),
        ("https://example.org/valve", ""),
    ],
)
def test_a_source_that_an_approval_will_refuse_is_named_at_once(
    base: Base, run_khms: Run, source: str, code: str
) -> None:
    made = run_khms(*FACT, "--title", "Four bar", "--source", source, "--json", input="The valve needs 4 bar.\n")
    found = json.loads(made.stdout)
    assert [finding["code"] for finding in found["findings"]] == ([code] if code else [])
    for done in (made, run_khms(*FACT, "--title", "Five bar", "--source", source, input="The valve needs 5 bar.\n")):
        assert done.returncode == 0 and (code in done.stderr if code else done.stderr == "")
        assert ("an approval will refuse it: mend memory/inbox/" in done.stderr) is bool(code)
    refused = run_khms(*found["approve"][1:])
    assert refused.returncode == (3 if code else 0) and code in refused.stderr


def test_without_a_quote_the_command_says_what_is_not_checked(base: Base, run_khms: Run) -> None:
    made = new(
        run_khms, "--title", "Four bar", "--source", "https://example.org/valve", body="The valve needs 4 bar.\n"
    )
    command = made["approve"]
    assert command[-4:] == ["--accept-unchecked", "quotes", "--accept-unchecked", "specifics"]  # type: ignore[index]
    assert run_khms(*command[1:]).returncode == 0  # type: ignore[index]


@pytest.mark.parametrize(
    ("args", "body", "code", "said"),
    [
        (("--title", "x", "--source", SOURCE), "", 2, "needs a body"),
        (("--source", SOURCE), "# \n", 2, "needs a title"),
        (("--title", "x"), "words\n", 2, "how it is known"),
        (("--title", "x", "--source", SOURCE, "--evidence", "guessed"), "words\n", 2, "'guessed' is no evidence"),
        (("--title", "x", "--source", SOURCE), "key " + "sk-" + "ant-a1b2c3d4e5f6g7h8i9j0\n", 3, "secret"),
    ],
)
def test_what_nobody_could_approve_is_not_written(
    base: Base, run_khms: Run, git: Callable[..., str], args: tuple[str, ...], body: str, code: int, said: str
) -> None:
    head = git(base, "rev-parse", "HEAD")
    done = run_khms(*FACT, *args, input=body)
    assert done.returncode == code and said in done.stderr, done
    assert git(base, "rev-parse", "HEAD") == head and not list(base.inbox.iterdir())


def test_types(base: Base, run_khms: Run, add_card: Callable[..., Path]) -> None:
    add_card(base, "K-00001")
    base.config.write_text('[cards.types.recipe]\nlevel = "derived"\nlabels = ["TAKE"]\n', encoding="utf-8")
    assert (
        run_khms(
            "card", "new", "recipe", "--title", "x", "--body", "-", "--derived-from", "K-00001", input="x\n"
        ).returncode
        == 0
    )
    done = run_khms("card", "new", "fct", "--title", "x", "--body", "-", input="x\n")
    assert done.returncode == 2 and "problem-solution" in done.stderr and "recipe" in done.stderr
    body = "SYMPTOM: a\nFIX: b\n"
    arrow = run_khms("card", "new", "problem→solution", *FACT[3:], "--title", "x", "--source", SOURCE, input=body)
    assert arrow.returncode == 0, arrow.stderr


def test_a_derived_card_names_what_it_follows_from(base: Base, run_khms: Run, add_card: Callable[..., Path]) -> None:
    for number in (1, 2):
        add_card(base, f"K-0000{number}", title="Something", body=f"Words that only number {number} has.\n")
    principle = ("card", "new", "principle", "--title", "Look at the path first", "--body", "-")
    body = "HOLDS: the path loses more than the source\n"
    done = run_khms(*principle, input=body)
    assert done.returncode == 2 and "--derived-from" in done.stderr
    assert run_khms(*principle, "--derived-from", "K-00009", input=body).returncode == 2
    both = ("--derived-from", "K-00001", "--derived-from", "K-00002")
    done = run_khms(*principle, *both, "--json", input=body)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    (candidate,) = inbox.find(base, made["unit"]).candidates
    assert candidate.meta["links"]["derived_from"] == ["K-00001", "K-00002"]
    subprocess.run(["git", "add", "--all"], cwd=base.root, check=True)
    subprocess.run(["git", "commit", "--quiet", "-m", "older cards"], cwd=base.root, check=True)
    done = run_khms(*made["approve"][1:])
    assert done.returncode == 0, done.stderr


def test_a_file_without_frontmatter_is_no_active_card(base: Base, run_khms: Run, write: Callable[..., Path]) -> None:
    write(base, "memory/know/K-00001.md", "Only words.\n")
    done = run_khms("card", "list")
    assert done.returncode == 1 and "active" not in done.stdout
    assert "memory/know/K-00001.md:1: the frontmatter is missing" in done.stderr


def test_an_agents_proposal_says_so(base: Base, run_khms: Run) -> None:
    done = run_khms(*FACT, "--title", "x", "--source", SOURCE, "--json", input="words here\n", env={"CLAUDECODE": "1"})
    unit = inbox.find(base, json.loads(done.stdout)["unit"])
    assert unit.candidates[0].flags == ("agent:claude-code",) and unit.meta["proposer"] == "agent:claude-code"


def test_the_editor_form(base: Base, run_khms: Run, tmp_path: Path) -> None:
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import sys\n"
        "text = open(sys.argv[1], encoding='utf-8').read()\n"
        "assert 'SYMPTOM: ' in text and 'title: ' in text, text\n"
        "text = text.replace('title: \"\"', 'title: From the editor').replace('evidence: \"\"', 'evidence: observed')\n"
        "text = text.replace('source: \"\"', 'source: \"journal/2026-03-04.md:3\"')\n"
        "text = text.replace('FIX: ', 'FIX: tighten it')\n"
        "open(sys.argv[1], 'w', encoding='utf-8').write(text)\n",
        encoding="utf-8",
    )
    env = {"EDITOR": f"{sys.executable} {editor}", "VISUAL": ""}
    done = run_khms("card", "new", "problem-solution", "--open", "--json", env=env)
    assert done.returncode == 0, done.stderr
    (candidate,) = inbox.find(base, json.loads(done.stdout)["unit"]).candidates
    assert candidate.title == "From the editor" and "FIX: tighten it" in candidate.body
    done = run_khms("card", "new", "problem-solution", "--open", env={"EDITOR": "true", "VISUAL": ""})
    assert done.returncode == 3 and "nothing was saved" in done.stderr


def test_lists_and_links(base: Base, run_khms: Run, add_card: Callable[..., Path], write: Callable[..., Path]) -> None:
    write(base, "memory/tags.yaml", "sensors:\n  aliases: [probe]\n")
    add_card(base, "K-00001", tags=["probe"])
    add_card(base, "K-00002", type="policy", level="derived", links={"derived_from": ["K-00001"]}, title="a\x1b[31mb")
    add_card(base, "K-00003", status="refuted", links={"refuted_by": ["K-00001"], "supports": ["K-99999"]})

    def ids(*args: str) -> list[str]:
        return [row["id"] for row in json.loads(run_khms("card", "list", "--json", *args).stdout)["cards"]]

    assert ids() == ["K-00001", "K-00002", "K-00003"]
    assert ids("--tag", "sensors") == ["K-00001"] == ids("--tag", "probe")
    assert ids("--type", "policy") == ["K-00002"]
    assert ids("--status", "refuted", "--status", "challenged") == ["K-00003"]
    assert "\x1b" not in run_khms("card", "list").stdout
    found = json.loads(run_khms("card", "links", "K-00003", "--json").stdout)
    assert [(link["rel"], link["id"]) for link in found["correctors"]] == [("refuted_by", "K-00001")]
    assert {"rel": "supports", "id": "K-99999", "title": "(not in this base)"} in found["links"]
    assert "K-00002 derived_from it" in run_khms("card", "links", "K-00001").stdout
    assert run_khms("card", "links", "K-00009").returncode == 1
    assert "! refuted by K-00001" in run_khms("show", "K-00003").stdout
    write(base, "memory/know/K-00004.md", "---\nid: [\n---\n")
    done = run_khms("card", "list")
    assert done.returncode == 1 and "K-00004.md:2" in done.stderr and "K-00001" in done.stdout


def test_a_change_of_status(
    base: Base, run_khms: Run, add_card: Callable[..., Path], commit: Callable[..., str]
) -> None:
    add_card(base, "K-00001")
    add_card(base, "K-00002")
    commit(base)
    done = run_khms("card", "status", "K-00001", "refuted", "--by", "K-00002", "--why", "measured again", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["old"] == "active"
    page = run_khms("show", "K-00001").stdout
    assert "! refuted by K-00002" in page and "measured again" in page
    assert "REFUTED by K-00002" in base.path("MEMORY.md").read_text(encoding="utf-8")


def test_show_knows_every_kind(base: Base, run_khms: Run, write: Callable[..., Path]) -> None:
    made = new(run_khms, "--title", "Loose ground", "--source", SOURCE)
    run_khms(*made["approve"][1:])  # type: ignore[index]
    (record,) = base.approvals.glob("*.json")
    write(base, "notes/a b.md", "# A note\n\ntext\n")
    for identity, kind in {
        "2026-03-04": "journal",
        record.stem: "approval",
        f"{made['unit']}/C1": "inbox",
        f"memory/inbox/{made['unit']}/C1.md": "inbox",
        str(made["unit"]): "inbox",
        "notes/a b": "note",
        "notes/a b.md": "note",
    }.items():
        done = run_khms("show", identity, "--json")
        assert done.returncode == 0, (identity, done.stderr)
        assert json.loads(done.stdout)["kind"] == kind, identity
        assert run_khms("show", identity).returncode == 0
    (tmp := base.root.parent / "outside.md").write_text("secret\n", encoding="utf-8")
    for identity in ("../outside", str(tmp), "K-77777", "M-0123456789ab", "nothing"):
        done = run_khms("show", identity)
        assert done.returncode in (1, 3) and "secret" not in done.stdout, identity


def test_show_of_nothing_is_a_wrong_call(base: Base, run_khms: Run) -> None:
    done = run_khms("show", " ")
    assert done.returncode == 2 and "there is no id" in done.stderr


def test_show_a_mark(base: Base, run_khms: Run) -> None:
    (mark,) = (mark for day in journal.days(base) for mark in day.marks)
    assert "a ground was loose" in run_khms("show", mark.id).stdout


def test_no_card_and_none_like_that(base: Base, run_khms: Run, add_card: Callable[..., Path]) -> None:
    done = run_khms("card", "list")
    assert done.returncode == 0 and "no cards yet" in done.stdout and "next: khms mark" in done.stdout
    assert json.loads(run_khms("card", "list", "--json").stdout)["cards"] == []
    add_card(base)
    assert "no card is like that" in run_khms("card", "list", "--type", "pattern").stdout


def test_links_of_no_card_as_json(base: Base, run_khms: Run) -> None:
    done = run_khms("card", "links", "K-00099", "--json")
    assert done.returncode == 1 and "khms card list" in done.stderr
    assert json.loads(done.stdout) == {"schema": "khms.links/1", "id": "K-00099", "found": False}


@pytest.mark.parametrize(
    ("editor", "code", "said"),
    [
        ("false", 4, "EDITOR"),
        ("no-such-editor", 4, "EDITOR"),
        ("true", 3, "nothing was saved"),
        ("touch -d 2040-01-01", 3, "nothing was written"),
    ],
)
def test_an_editor_that_gives_nothing_back(base: Base, run_khms: Run, editor: str, code: int, said: str) -> None:
    env = {"EDITOR": editor, "VISUAL": ""}
    done = run_khms("card", "new", "problem-solution", "--title", "t", "--open", env=env)
    assert (done.returncode, done.stdout) == (code, "") and said in done.stderr and "--body FILE" in done.stderr
    assert list(base.inbox.iterdir()) == []


def test_a_text_given_as_a_file_says_how_it_goes(base: Base, run_khms: Run) -> None:
    done = run_khms("card", "new", "fact", "--title", "t", "--body", "the text itself")
    assert done.returncode == 2 and "| khms card new" in done.stderr


def test_show_of_what_is_not_there_answers_as_json(
    base: Base, run_khms: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    done = run_khms("show", "K-00099", "--json", cwd=base.root)
    assert done.returncode == 1
    assert json.loads(done.stdout) == {"schema": "khms.show/1", "id": "K-00099", "found": False}
