"""From the merge of a pull request to the card, by a job: real git on all sides, and a host whose API is spoken to over
HTTP. The answers have the shape of GitHub's, less the keys that nobody reads."""

import json
import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from khms.config import Config
from khms.hosts import forge as hosts
from khms.pipeline import nightly as pipeline
from khms.store import cards, inbox
from khms.store.layout import Base
from khms.store.receipts import ledger
from khms.store.repo import Repo

Git = Callable[..., str]
TOKEN = "ghs_0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass
class Hub:
    """What the host knows. `down` makes every answer an error, `asked` holds (method, path, authorization)."""

    pulls: dict[int, dict[str, Any]] = field(default_factory=dict)
    commits: dict[str, list[int]] = field(default_factory=dict)
    reviews: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    writers: set[str] = field(default_factory=lambda: {"ada", "bob", "eve"})
    down: int = 0
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    created: list[dict[str, Any]] = field(default_factory=list)
    forbidden: bool = False
    url: str = ""

    def pull(self, number: int, author: str, merge: str, commits: list[str], base: str = "main") -> None:
        self.pulls[number] = {
            "number": number,
            "html_url": f"https://github.com/ada/garden/pull/{number}",
            "state": "closed",
            "user": {"login": author, "type": "User"},
            "merged_at": "2026-03-06T09:00:00Z",
            "merge_commit_sha": merge,
            "head": {"ref": "khms/inbox/x", "sha": commits[0]},
            "base": {"ref": base, "repo": {"full_name": "ada/garden"}},
        }
        for commit in {merge, *commits}:
            self.commits.setdefault(commit, []).append(number)
        self.reviews.setdefault(number, [])

    def review(
        self,
        number: int,
        login: str,
        commit: str | None,
        state: str = "APPROVED",
        kind: str = "User",
        association: str = "MEMBER",
    ) -> None:
        at = f"2026-03-05T10:{len(self.reviews[number]):02d}:00Z"
        self.reviews[number].append({
            "id": len(self.reviews[number]),
            "user": {"login": login, "type": kind},
            "body": "",
            "state": state,
            "submitted_at": at,
            "commit_id": commit,
            "author_association": association,
        })  # fmt: skip

    def answer(self, method: str, path: str, query: Mapping[str, list[str]], body: Any) -> tuple[int, Any]:
        if self.down:
            return self.down, {"message": "unicorn"}
        prefix = "/repos/ada/garden/"
        if path.startswith("/users/"):
            login = path.removeprefix("/users/")
            return 200, {"login": login, "name": f"{login.title()} <root@evil>\n of the Garden"}
        if not path.startswith(prefix):
            return 404, {"message": "Not Found"}
        inner = path.removeprefix(prefix)
        if found := re.fullmatch(r"commits/([0-9a-f]+)/pulls", inner):
            return 200, [self.pulls[number] for number in self.commits.get(found[1], [])]
        if found := re.fullmatch(r"pulls/(\d+)/reviews", inner):
            return 200, self.reviews[int(found[1])]
        if found := re.fullmatch(r"collaborators/([\w.%-]+)/permission", inner):
            return 200, {"permission": "write" if found[1] in self.writers else "read"}
        if inner == "pulls" and method == "POST":
            if self.forbidden:
                return 403, {"message": "GitHub Actions is not permitted to create pull requests"}
            self.created.append(body)
            return 201, {"html_url": f"https://github.com/ada/garden/pull/{90 + len(self.created)}"}
        if inner == "pulls":
            wanted = query["head"][0].removeprefix("ada:")
            heads = [one["head"] for one in self.created]
            numbers = [at for at, head in enumerate(heads, 91) if head == wanted]
            rows = [{"html_url": f"https://github.com/ada/garden/pull/{n}", "head": {"ref": wanted}} for n in numbers]
            return 200, rows
        return 404, {"message": "Not Found"}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    known = Hub()

    class Handler(BaseHTTPRequestHandler):
        def _speak(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            known.asked.append((self.command, parts.path, self.headers.get("authorization") or ""))
            query = parse_qs(parts.query)
            status, value = known.answer(self.command, parts.path, query, body)
            headers = {}
            if isinstance(value, list) and not known.down:  # two items a page, so that every list is turned over
                page = int((query.get("page") or ["1"])[0])
                if len(value) > 2 * page:
                    query["page"] = [str(page + 1)]
                    more = "&".join(f"{name}={item}" for name, items in query.items() for item in items)
                    headers["Link"] = f'<{known.url}{parts.path}?{more}>; rel="next"'
                value = value[2 * page - 2 : 2 * page]
            data = json.dumps(value).encode()
            self.send_response(status)
            for name, text in headers.items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _speak

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    known.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setattr(hosts, "PAUSES", (0.0, 0.0))
    yield known
    server.shutdown()
    thread.join()
    server.server_close()


@dataclass
class Story:
    """A base whose nightly pushed a unit, and a reviewer's clone of it."""

    base: Base
    remote: Path
    there: Path
    unit: str
    git: Git
    hub: Hub
    run_khms: Callable[..., "subprocess.CompletedProcess[str]"]
    tmp: Path
    prefix: str = ""
    jobs: int = 0

    @property
    def branch(self) -> str:
        return f"khms/inbox/{self.unit}"

    @property
    def file(self) -> Path:
        return self.there / f"{self.prefix}memory/inbox/{self.unit}/C1.md"

    def edit(self, old: str, new: str) -> str:
        """The reviewer changes the candidate in its branch and pushes; the new tip."""
        text = self.file.read_text(encoding="utf-8")
        assert old in text
        self.file.write_text(text.replace(old, new), encoding="utf-8")
        self.git(self.there, "commit", "--quiet", "-am", "edit")
        self.git(self.there, "push", "--quiet", "origin", self.branch)
        return self.git(self.there, "rev-parse", "HEAD")

    def merge(self, way: str = "merge", number: int = 1, author: str = "ada") -> str:
        """Merges the branch as the host would, deletes it there, and tells the API of it; returns the old main."""
        git, there = self.git, self.there
        tip = git(there, "rev-parse", self.branch)
        git(there, "switch", "--quiet", "main")
        old = git(there, "rev-parse", "HEAD")
        git(there, "commit", "--quiet", "--allow-empty", "-m", "meanwhile")
        if way == "merge":
            git(there, "merge", "--quiet", "--no-ff", self.branch)
        elif way == "squash":
            git(there, "merge", "--quiet", "--squash", self.branch)
            git(there, "commit", "--quiet", "-m", "squashed")
        else:
            git(there, "rebase", "--quiet", "main", self.branch)
            git(there, "switch", "--quiet", "main")
            git(there, "merge", "--quiet", "--ff-only", self.branch)
        git(there, "push", "--quiet", "origin", "main")
        if git(there, "ls-remote", "origin", self.branch):
            git(self.remote, "update-ref", f"refs/pull/{number}/head", tip)
            git(there, "push", "--quiet", "origin", f":{self.branch}")
        new = git(there, "rev-parse", "main")
        brought = git(there, "rev-list", f"{old}..{new}").split()
        self.hub.pull(number, author, new, [tip, *brought[:-1]] if way == "rebase" else [tip])
        return old

    def job(self, before: str, *args: str, env: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        """The job of a push, in a fresh clone."""
        self.jobs += 1
        place = f"job-{self.jobs}"
        self.git(self.tmp, "clone", "--quiet", "https://github.com/ada/garden.git", place)
        after = self.git(self.tmp / place, "rev-parse", "HEAD")
        event = {"ref": "refs/heads/main", "before": before, "after": after, "repository": {"default_branch": "main"}}
        (self.tmp / "event.json").write_text(json.dumps(event), encoding="utf-8")
        variables = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": self.hub.url,
            "GITHUB_EVENT_PATH": str(self.tmp / "event.json"),
            "GITHUB_REPOSITORY": "ada/garden",
            "GITHUB_TOKEN": TOKEN,
            "KHMS_ROOT": str(self.tmp / place / self.prefix),
        }
        done = self.run_khms("approve", "--merged", *args, cwd=self.tmp / place, env={**variables, **(env or {})})
        assert TOKEN not in done.stdout + done.stderr
        return done

    def main(self) -> Base:
        """The branch that receives approvals, as the remote has it now."""
        self.git(self.there, "switch", "--quiet", "main")
        self.git(self.there, "pull", "--quiet", "origin", "main")
        return Base((self.there / self.prefix).resolve(), named=True)


@pytest.fixture
def begin(hosted: Any, hub: Hub, git: Git, run_khms: Any, tmp_path: Path) -> Callable[..., Story]:
    def tell(base: Base, prefix: str = "") -> Story:
        remote = hosted(base)
        deliver = Config([("test", {"nightly.deliver": "push"})])
        found = pipeline.nightly(base, Repo(base.root), deliver)
        git(tmp_path, "clone", "--quiet", "https://github.com/ada/garden.git", "there")
        git(tmp_path / "there", "switch", "--quiet", f"khms/inbox/{found.unit}")
        return Story(base, remote, tmp_path / "there", found.unit, git, hub, run_khms, tmp_path, prefix)

    return tell


@pytest.fixture
def story(base: Base, begin: Callable[..., Story]) -> Story:
    return begin(base)


@pytest.mark.parametrize("way", ["merge", "squash", "rebase"])
def test_what_a_reviewer_approved_comes_in_once_in_that_reviewers_name(story: Story, way: str) -> None:
    tip = story.edit("kind: unjudged", "kind: new")
    before = story.merge(way)
    story.hub.review(1, "eve", None, "COMMENTED")
    story.hub.review(1, "bob", tip)
    story.hub.review(1, "eve", None, "COMMENTED")
    done = story.job(before)
    assert (done.returncode, done.stderr) == (0, "")
    main = story.main()
    (record,) = cards.approvals(main)
    assert record.reviewer == "Bob root@evil of the Garden <bob@users.noreply.github.com>"
    assert [card.id for card in record.cards] == ["K-00001"]
    message = story.git(story.there, "log", "-1", "--format=%B")
    assert "Khms-Request: https://github.com/ada/garden/pull/1" in message
    assert {authorization for _, _, authorization in story.hub.asked} == {f"Bearer {TOKEN}"}
    again = story.job(before, "--json")
    assert (again.returncode, json.loads(again.stdout)["units"][0]["state"]) == (0, "already")
    assert len(cards.approvals(story.main())) == 1
    story.git(story.base, "fetch", "--quiet", "--prune", "origin")
    story.git(story.base, "rebase", "--quiet", "origin/main")
    story.git(story.base, "branch", "--quiet", "-D", story.branch)
    assert pipeline.nightly(story.base, Repo(story.base.root), Config([])).decided == 0
    for check in ("lint", "audit"):
        assert story.run_khms(check, cwd=story.base.root).returncode == 0
    assert len([r for r in ledger(story.base).receipts if r.stage == "propose"]) == 1


def test_the_squashed_branch_may_be_gone_and_its_commits_come_from_the_hosts_own_ref(story: Story) -> None:
    tip = story.edit("kind: unjudged", "kind: new")
    before = story.merge("squash")
    story.hub.review(1, "bob", tip)
    assert "refs/heads/khms" not in story.git(story.remote, "for-each-ref")
    assert story.job(before).returncode == 0


def test_a_base_below_the_top_of_its_repository(
    begin: Callable[..., Story], git: Git, write: Callable[..., Path], commit: Callable[..., str], tmp_path: Path
) -> None:
    git(tmp_path, "init", "--quiet", "project")
    root = tmp_path / "project" / ".memory"
    write(root, "khms.toml", "")
    write(root, "journal/2026-03-04.md", "MARK[solved] frames failed because a ground was loose\n")
    commit(tmp_path / "project")
    story = begin(Base(root.resolve(), named=True), ".memory/")
    tip = story.edit("kind: unjudged", "kind: new")
    before = story.merge("squash")
    refused(story, before, "nobody approved it")
    story.hub.review(1, "bob", tip)
    assert story.job(before).returncode == 0
    assert [card.id for record in cards.approvals(story.main()) for card in record.cards] == ["K-00001"]


def refused(story: Story, before: str, *words: str, args: tuple[str, ...] = ()) -> None:
    """The job says no, for these reasons, and nothing came in."""
    tip = story.git(story.remote, "rev-parse", "main")
    done = story.job(before, *args)
    assert done.returncode == 3, done
    for word in words:
        assert word in done.stdout, done.stdout
    assert story.git(story.remote, "rev-parse", "main") == tip


def test_an_approval_that_does_not_count_lets_nothing_in(story: Story) -> None:
    older = story.git(story.there, "rev-parse", "HEAD")
    tip = story.edit("kind: unjudged", "kind: new")
    before = story.merge(author="ada")
    hub = story.hub
    refused(story, before, "nobody approved it")
    hub.review(1, "ada", tip)
    refused(story, before, "ada is the author of the request")
    hub.review(1, "robot[bot]", tip, kind="Bot")
    hub.review(1, "stranger", tip, association="NONE")
    refused(story, before, "robot[bot] is a bot", "stranger is a bot, or not of this project")
    hub.review(1, "guest", tip)
    refused(story, before, "guest may not write here")
    hub.review(1, "bob", older)
    refused(story, before, "bob approved other bytes")
    hub.review(1, "bob", tip)
    hub.review(1, "bob", tip, "DISMISSED")
    refused(story, before, "bob did not approve it (dismissed)")
    hub.review(1, "carl", None)
    refused(story, before, "carl approved a commit that is not there")
    hub.review(1, "bob", tip)
    hub.review(1, "eve", tip, "CHANGES_REQUESTED")
    refused(story, before, "eve asked for changes")
    hub.review(1, "eve", tip)
    assert story.job(before).returncode == 0


def test_a_relation_that_nobody_judged_is_not_judged_by_a_merge(story: Story) -> None:
    tip = story.git(story.there, "rev-parse", "HEAD")
    before = story.merge()
    story.hub.review(1, "bob", tip)
    refused(story, before, "nobody judged its relation")
    assert story.job(before, "--unjudged").returncode == 0
    assert len(cards.approvals(story.main())) == 1


def test_a_change_that_no_request_brought_lets_nothing_in(story: Story) -> None:
    tip = story.edit("kind: unjudged", "kind: new")
    before = story.merge()
    story.hub.review(1, "bob", tip)
    story.file.write_text(story.file.read_text(encoding="utf-8").replace("loose", "lost"), encoding="utf-8")
    story.git(story.there, "commit", "--quiet", "-am", "straight to main")
    story.git(story.there, "push", "--quiet", "origin", "main")
    refused(story, before, "no merged request brought the commit")


def test_a_request_to_another_branch_or_that_was_never_merged_brings_nothing(story: Story) -> None:
    tip = story.edit("kind: unjudged", "kind: new")
    before = story.merge()
    story.hub.review(1, "bob", tip)
    story.hub.pulls[1]["base"]["ref"] = "develop"
    refused(story, before, "no merged request brought the commit")
    story.hub.pulls[1]["base"]["ref"] = "main"
    story.hub.pulls[1]["merged_at"] = None
    refused(story, before, "no merged request brought the commit")


def test_a_later_request_for_the_unit_needs_its_own_approval(story: Story) -> None:
    tip = story.git(story.there, "rev-parse", "HEAD")
    first = story.merge()
    story.hub.review(1, "bob", tip)
    refused(story, first, "nobody judged its relation")
    story.git(story.there, "switch", "--quiet", "-C", story.branch, "main")
    tip = story.edit("kind: unjudged", "kind: new")
    second = story.merge(number=2)
    refused(story, second, "pull/2")
    story.hub.review(2, "eve", tip)
    done = story.job(second, "--json")
    assert json.loads(done.stdout)["units"][0]["reviewer"].startswith("Eve ")


def test_a_host_that_does_not_answer_is_exit_4_and_nothing_changed(story: Story) -> None:
    tip = story.edit("kind: unjudged", "kind: new")
    before = story.merge()
    story.hub.review(1, "bob", tip)
    head = story.git(story.remote, "rev-parse", "main")
    for status in (500, 403, 404):
        story.hub.down = status
        done = story.job(before)
        assert (done.returncode, "Traceback" in done.stderr) == (4, False)
    gone = story.job(before, env={"GITHUB_API_URL": "http://127.0.0.1:9"})
    assert gone.returncode == 4
    story.hub.down = 0
    story.hub.reviews[1][0].pop("state")
    assert story.job(before).returncode == 4
    assert story.git(story.remote, "rev-parse", "main") == head
    assert not list(story.tmp.glob("job-*/memory/approvals/*.json"))


def test_no_job_an_agent_and_an_address_in_the_clear(story: Story) -> None:
    tip = story.edit("kind: unjudged", "kind: new")
    before = story.merge()
    story.hub.review(1, "bob", tip)
    for env, code in (
        ({"GITHUB_ACTIONS": ""}, 3),
        ({"CLAUDECODE": "1"}, 3),
        ({"KHMS_BACKGROUND": "1"}, 3),
        ({"GITHUB_API_URL": "http://api.example.org"}, 3),
        ({"GITHUB_EVENT_PATH": "/nowhere"}, 4),
    ):
        assert story.job(before, env=env).returncode == code, env
    assert story.run_khms("approve").returncode == 2
    assert story.run_khms("approve", story.unit, "--merged").returncode == 2
    assert story.job("0123456789" * 4).returncode == 4  # a commit that this clone has not
    assert not list(story.tmp.glob("job-*/memory/approvals/*.json"))
    assert story.job(before, f"{before}..HEAD").returncode == 0


def test_a_push_without_units_and_one_to_another_branch(story: Story) -> None:
    head = story.git(story.remote, "rev-parse", "main")
    done = story.job(head)
    assert (done.returncode, done.stdout) == (0, "no unit came in with these commits\n")
    assert story.hub.asked == []


def protect(story: Story) -> None:
    """A server that refuses pushes to main, as a protected branch does."""
    hook = story.remote / "hooks" / "update"
    hook.write_text('#!/bin/sh\n[ "$1" != refs/heads/main ]\n', encoding="utf-8")
    hook.chmod(0o755)


def test_a_protected_branch_gets_a_request_whose_merge_starts_nothing(story: Story) -> None:
    tip = story.edit("kind: unjudged", "kind: new")
    before = story.merge()
    story.hub.review(1, "bob", tip)
    protect(story)
    story.hub.forbidden = True
    assert story.job(before).returncode == 4  # pushed, and not allowed to ask
    story.hub.forbidden = False
    second = story.job(before)
    assert (second.returncode, "waits" in second.stdout) == (0, True)
    third = story.job(before)
    assert "its approval waits for the merge of https://github.com/ada/garden/pull/91" in third.stdout
    assert len(story.hub.created) == 1
    asked = story.hub.created[0]
    assert (asked["head"], asked["base"]) == (f"khms/approval/{story.unit}", "main")
    (story.remote / "hooks" / "update").unlink()
    old = story.git(story.remote, "rev-parse", "main")
    story.git(story.there, "fetch", "--quiet", "origin")
    story.git(story.there, "switch", "--quiet", "main")
    story.git(story.there, "merge", "--quiet", "--squash", f"origin/{asked['head']}")
    story.git(story.there, "commit", "--quiet", "-m", "approval")
    story.git(story.there, "push", "--quiet", "origin", "main")
    done = story.job(old)
    assert (done.returncode, done.stdout) == (0, "no unit came in with these commits\n")
    assert [card.id for record in cards.approvals(story.main()) for card in record.cards] == ["K-00001"]
    assert inbox.find(story.main(), story.unit).candidates


def test_a_protected_branch_is_asked_for_at_once_where_the_job_may(story: Story) -> None:
    tip = story.edit("kind: unjudged", "kind: new")
    before = story.merge()
    story.hub.review(1, "bob", tip)
    protect(story)
    done = story.job(before)
    assert (done.returncode, "pull/91" in done.stdout) == (0, True)
    assert "C1 as K-00001; approved by Bob" in story.hub.created[0]["body"]


def test_signed_as_ci_where_the_base_requires_it(story: Story) -> None:
    key = story.tmp / "ci-key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    public = " ".join(key.with_suffix(".pub").read_text(encoding="utf-8").split()[:2])
    git, there = story.git, story.there
    git(there, "switch", "--quiet", "main")
    (there / "memory").mkdir()
    (there / "memory/signers").write_text(f'ci namespaces="khms-approval" {public}\n', encoding="utf-8")
    (there / "khms.toml").write_text("[review]\nrequire_signed = true\n", encoding="utf-8")
    git(there, "add", "--all")
    git(there, "commit", "--quiet", "-m", "sign")
    git(there, "push", "--quiet", "origin", "main")
    git(there, "switch", "--quiet", story.branch)
    tip = story.edit("kind: unjudged", "kind: new")
    before = story.merge()
    story.hub.review(1, "bob", tip)
    unsigned = story.job(before)
    assert unsigned.returncode in (3, 4)
    assert story.job(before, env={"KHMS_SIGNING_KEY": str(key)}).returncode == 0
    (record,) = cards.approvals(story.main())
    assert (record.signature or "").startswith("-----BEGIN SSH SIGNATURE-----")
    assert record.reviewer.endswith("<bob@users.noreply.github.com>")
