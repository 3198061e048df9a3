"""Two bases in one answer: fair to both, and never worse for the first because of the second."""

import json
import random
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from khms.config import Config, load
from khms.errors import Usage
from khms.index import sync
from khms.model.document import Hit, Link
from khms.recall import search
from khms.recall.bases import ask, merged, once, together
from khms.store.layout import Base

Add = Callable[..., Path]
Write = Callable[..., Path]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def personal(base: Base) -> Base | None:
    """The user's own base, where it answers beside `base` and nothing switches it off."""
    config = load(base.root)
    whole, _ = together(base, Config([("test", {**config, "recall.personal": True})]))
    return whole[1][0] if len(whole) > 1 else None


def hit(card_id: str, score: float, *, exact: int = 0, base: str = "", **more: object) -> Hit:
    path = f"{base}/memory/know/{card_id}.md" if base else f"memory/know/{card_id}.md"
    return Hit(card_id, "card", "fact", f"title {card_id}", path, 1, score, base=base, exact=exact, **more)  # type: ignore[arg-type]


def names(hits: list[Hit]) -> list[str]:
    return [one.base[1:] + one.id for one in hits]


@pytest.fixture
def own(tmp_path: Path, write: Write, add_card: Add) -> Base:
    """The user's own base, named in the user's configuration; in no git repository."""
    root = tmp_path / "own"
    write(root, "khms.toml", "")
    write(root, "memory/know/.keep", "")
    write(tmp_path / "home" / "config", "config.toml", f'[base]\ndefault = "{root}"\n')
    base = Base(root.resolve(), named=True)
    add_card(base, "K-00001", title="Tea before coffee", body="lampdrift at home: tea first, then coffee\n")
    return base


@pytest.fixture
def both(base: Base, own: Base, add_card: Add) -> list[tuple[Base, Config]]:
    add_card(base, "K-00001", title="Frames need a ground", body="lampdrift in the project: ground the frame\n")
    return [(base, load(base.root)), (own, load(own.root))]


def test_each_list_keeps_its_order_and_the_better_head_comes_first() -> None:
    first = [hit("1", 0.9), hit("2", 0.4), hit("3", 0.6)]
    second = [hit("1", 0.95, base="/o"), hit("2", 0.5, base="/o"), hit("3", 0.1, base="/o")]
    assert names(merged([first, second])) == ["o1", "1", "2", "3", "o2", "o3"]
    assert merged([first, []]) == first and merged([[], []]) == []


def test_what_the_question_names_comes_first_wherever_it_lies() -> None:
    second = [hit("7", 0.3, exact=4, base="/o"), hit("8", 0.2, base="/o")]
    assert names(merged([[hit("1", 0.9)], second])) == ["o7", "1", "o8"]


def test_equals_come_from_the_first_base() -> None:
    assert names(merged([[hit("1", 0.5)], [hit("1", 0.5, base="/o")]])) == ["1", "o1"]


def test_one_base_is_the_ordinary_answer(both: list[tuple[Base, Config]]) -> None:
    base, config = both[0]
    alone = search.recall(base, "lampdrift", config=config, refresh=True)
    asked = ask(both[:1], "lampdrift", refresh=True)
    assert replace(asked, elapsed_ms=0, checked_at=0) == replace(alone, elapsed_ms=0, checked_at=0)
    assert all("base" not in one for one in asked.as_json()["hits"])


def test_both_answer_and_the_other_is_named(both: list[tuple[Base, Config]]) -> None:
    answer = ask(both, "lampdrift", refresh=True)
    own = both[1][0]
    told = [(one.id, one.base, one.path) for one in answer]
    assert told == [
        ("K-00001", "", "memory/know/K-00001.md"),
        ("K-00001", str(own.root), str(own.know / "K-00001.md")),
    ]
    assert answer.hits[1].snippet.startswith("lampdrift at home")
    assert answer.others == ((str(own.root), ""),) and answer.channel == "hybrid" and answer.note is None
    assert [one.get("base") for one in answer.as_json()["hits"]] == [None, str(own.root)]
    assert len(ask(both, "lampdrift", refresh=True, limit=1).hits) == 1


def test_by_words_alone_and_without_snippets_as_a_hook_asks(both: list[tuple[Base, Config]]) -> None:
    for base, config in both:
        sync.refresh(base, config=config)
    answer = ask(both, "lampdrift frame", as_text=True, snippets=False, by_meaning=False)
    assert [bool(one.base) for one in answer] == [False, True]
    assert answer.channel == "lexical" and answer.others == ((str(both[1][0].root), ""),)


def test_the_same_card_in_both_is_shown_once(both: list[tuple[Base, Config]], add_card: Add) -> None:
    (base, _), (own, _) = both
    add_card(base, "K-00005", title="Seal the joint", body="needle of a joint\n\nwith two  lines\n")
    add_card(own, "K-00031", title="Seal  the JOINT", body="needle of a joint\nwith two lines\n", tags=["needle"])
    answer = ask(both, "needle joint", refresh=True)
    assert [(one.id, one.base) for one in answer] == [("K-00005", "")]
    add_card(own, "K-00031", title="Seal the joint", body="needle of a joint\nwith other lines\n")
    assert len(ask(both, "needle joint", refresh=True).hits) == 2


def test_a_copy_of_another_standing_is_no_copy(both: list[tuple[Base, Config]], add_card: Add) -> None:
    for (base, _), status in zip(both, ("active", "refuted"), strict=True):
        add_card(base, "K-00005", title="Seal the joint", body="needle of a joint\n", status=status)
    answer = ask(both, "needle joint", refresh=True)
    assert [(one.status, bool(one.base)) for one in answer] == [("active", False), ("refuted", True)]


def test_a_corrector_is_not_lost_with_a_copy(tmp_path: Path, write: Write) -> None:
    for folder in ("a", "b"):
        write(tmp_path / folder, "memory/know/5.md", "the same\n")
    other = hit("5", 0.5, base=str(tmp_path / "b"), correctors=(Link("contradicts", "K-9", "it is not"),))
    assert len(once([hit("5", 0.6), other], str(tmp_path / "a"))) == 2
    assert len(once([hit("5", 0.6), replace(other, correctors=())], str(tmp_path / "a"))) == 1


def test_a_file_that_both_hold_is_shown_once_in_the_better_place(tmp_path: Path, write: Write) -> None:
    write(tmp_path, "memory/know/5.md", "---\nbroken: [\n")
    mine = hit("5", 0.5)
    others = replace(mine, base="/o", path=str(tmp_path / "memory/know/5.md"), score=0.9)
    assert once([others, hit("1", 0.7), mine], str(tmp_path)) == [mine, hit("1", 0.7)]


def test_twins_within_a_base_are_not_ours_to_join(tmp_path: Path, write: Write) -> None:
    for name in ("5", "6"):
        write(tmp_path, f"memory/know/{name}.md", "the same\n")
    twins = [replace(hit(name, 0.5), title="one") for name in ("5", "6")]
    assert once(twins, str(tmp_path)) == twins


def test_twenty_beside_two_thousand(base: Base, own: Base, add_card: Add) -> None:
    """Each of the small base's cards is first for its own question, and each of some of the large one's."""
    from khms.measure import synthetic

    synthetic.fill(base.root, 2_000)
    rng = random.Random(3)
    things = ("kettle", "bicycle", "violin", "passport", "orchid", "sourdough", "chess", "tent", "piano", "canoe")
    questions = {}
    for number, thing in enumerate(things * 2, 1):
        verb = rng.choice(["clean", "store", "lend", "repair"]) + str(number)
        title = f"How to {verb} the {thing}"
        add_card(own, f"K-{number:05d}", title=title, body=f"{verb} the {thing} with care, as the neighbour said\n")
        questions[f"{verb} the {thing}"] = f"K-{number:05d}"
    whole = [(base, load(base.root)), (own, load(own.root))]
    for one, config in whole:
        sync.refresh(one, config=config)
    for question, card in questions.items():
        best = ask(whole, question, by_meaning=False, snippets=False).hits[0]
        assert (best.id, best.base) == (card, str(own.root)), question
    for path in sorted(base.know.rglob("*.md"))[::200]:
        title = next(line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("title: "))
        question = title.removeprefix("title: ").strip("\"'")
        alone = search.recall(base, question, by_meaning=False, snippets=False).hits
        together_ = ask(whole, question, by_meaning=False, snippets=False).hits
        assert together_[0].id == alone[0].id and not together_[0].base, question


def test_the_personal_base(base: Base, own: Base, tmp_path: Path, write: Write) -> None:
    found = personal(base)
    assert found == own and found.named
    assert personal(own) is None
    assert [one for one, _ in together(own, load(own.root))[0]] == [own]
    assert [one for one, _ in together(base, load(base.root))[0]] == [base, own]
    write(base, "khms.toml", "[recall]\npersonal = false\n")
    assert [one for one, _ in together(base, load(base.root))[0]] == [base]
    link = tmp_path / "link"
    link.symlink_to(base.root)
    write(tmp_path / "home" / "config", "config.toml", f'[base]\ndefault = "{link}"\n')
    write(base, "khms.toml", "")
    assert personal(base) is None and together(base, load(base.root))[1] == ""


def test_no_personal_base_says_nothing(base: Base) -> None:
    assert personal(base) is None
    whole, said = together(base, load(base.root))
    assert ([one for one, _ in whole], said) == ([base], "")


@pytest.mark.parametrize("harm", ["gone", "settings", "records"])
def test_a_personal_base_that_cannot_be_asked_spoils_nothing(
    base: Base, own: Base, add_card: Add, write: Write, run_khms: Run, harm: str
) -> None:
    add_card(base, "K-00001", title="Frames need a ground", body="lampdrift in the project\n")
    if harm == "gone":
        own.root.rename(own.root.with_name("elsewhere"))
    elif harm == "settings":
        write(own, "khms.toml", "[recall]\nlimit = 'many'\n")
    else:
        (own.root / ".khms").write_text("a file where its folder must be\n", encoding="utf-8")
    done = run_khms("recall", "lampdrift", "--json")
    assert done.returncode == 0, done.stderr
    assert [one["id"] for one in json.loads(done.stdout)["hits"]] == ["K-00001"]
    assert str(own.root) in done.stderr and "Traceback" not in done.stderr


def test_what_the_personal_base_answered_opens(base: Base, own: Base, add_card: Add, run_khms: Run) -> None:
    add_card(base, "K-00001", title="Frames need a ground", body="lampdrift in the project\n")
    add_card(own, "K-00002", title="Kettles whistle", body="lampdrift of the kettle\n")
    hit = next(one for one in json.loads(run_khms("recall", "kettle", "--json").stdout)["hits"] if one.get("base"))
    shown = json.loads(run_khms("show", hit["id"], "--json").stdout)
    assert (shown["title"], shown["path"]) == ("Kettles whistle", hit["path"])
    assert json.loads(run_khms("show", "K-00001", "--json").stdout)["title"] == "Frames need a ground"
    assert run_khms("show", "K-00009").returncode == 1


def test_a_personal_base_without_an_index_is_left_out_with_a_word(both: list[tuple[Base, Config]]) -> None:
    sync.refresh(both[0][0])
    answer = ask(both, "lampdrift", by_meaning=False)
    assert [one.base for one in answer] == [""]
    assert answer.others[0][1].startswith("not asked: this base has no index")


def test_the_first_bases_failure_is_raised(both: list[tuple[Base, Config]]) -> None:
    sync.refresh(both[1][0])
    with pytest.raises(search.Unavailable):
        ask(both, "lampdrift", by_meaning=False)


def test_a_filter_that_only_the_other_base_knows(both: list[tuple[Base, Config]], add_card: Add) -> None:
    add_card(both[1][0], "K-00002", type="recipe", title="Bread", body="needle of bread\n")
    answer = ask(both, "type:recipe needle", refresh=True, strict=True)
    assert [(one.id, bool(one.base)) for one in answer] == [("K-00002", True)]
    with pytest.raises(Usage):
        ask(both, "type:cake needle", refresh=True, strict=True)
    add_card(both[0][0], "K-00003", type="cake", title="Cake", body="needle of cake\n")
    assert [one.id for one in ask(both, "type:cake needle", refresh=True, strict=True)] == ["K-00003"]


def test_nothing_on_record_counts_both_bases_other_shelves(both: list[tuple[Base, Config]], write: Write) -> None:
    for one, _ in both:
        write(one, "journal/2026-03-05.md", "needle of a day\n")
    answer = ask(both, "needle", refresh=True)
    assert not answer.hits and dict(answer.elsewhere) == {"unreviewed": 2}


def test_by_command_line(both: list[tuple[Base, Config]], run_khms: Run) -> None:
    own = both[1][0]
    done = run_khms("recall", "lampdrift")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["1", "K-00001", "Frames", "need", "a", "ground"]
    assert f" 2  K-00001 of {own.root}  Tea before coffee" in lines
    assert f"    {own.know / 'K-00001.md'}:" in done.stdout
    inside = run_khms("recall", "lampdrift", "--json", cwd=own.root)
    assert [one.get("base") for one in json.loads(inside.stdout)["hits"]] == [None]


def test_nothing_of_another_base_is_in_the_answer_of_the_past(
    both: list[tuple[Base, Config]], run_khms: Run, commit: Callable[..., str]
) -> None:
    commit(both[0][0])
    done = run_khms("recall", "--at", "HEAD", "lampdrift", "--json")
    assert [one.get("base") for one in json.loads(done.stdout)["hits"]] == [None]
    assert personal(both[0][0]) is not None
