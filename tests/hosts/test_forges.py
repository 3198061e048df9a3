"""Git hosts: whose repository a URL names, what a job's environment says, and what GitLab's and GitHub's API answer.
The calls go over real HTTP, to a server here that holds answers by their path."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from khms.errors import Refused, Unavailable
from khms.hosts import forge, forges, github, gitlab
from khms.hosts.forge import Job, Place, Request

Answers = dict[str, Any]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Answers]]:
    """(address, answers by path): a value, (status, value), (status, value, headers), or a list of them for one call
    each."""
    answers: Answers = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            held = answers.get(self.path, (404, {"message": "Not Found"}))
            if isinstance(held, list) and held and isinstance(held[0], tuple):
                held = held.pop(0) if len(held) > 1 else held[0]
            status, value, headers = (*held, {})[:3] if isinstance(held, tuple) else (200, held, {})
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            answers.setdefault("seen", []).append((self.path, dict(self.headers)))
            self.send_response(status)
            for name, text in headers.items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setattr(forge, "PAUSES", (0.0, 0.0, 0.0))
    yield f"http://127.0.0.1:{server.server_address[1]}", answers
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("url", "place", "known"),
    [
        ("https://github.com/ada/garden.git", Place("github.com", "ada/garden"), "github"),
        ("https://ada:secret@github.com/ada/garden", Place("github.com", "ada/garden"), "github"),
        ("git@github.com:ada/garden.git", Place("github.com", "ada/garden"), "github"),
        ("ssh://git@github.example.org:2222/ada/garden.git", Place("github.example.org", "ada/garden"), "github"),
        ("https://gitlab.com/group/below/garden.git", Place("gitlab.com", "group/below/garden"), "gitlab"),
        ("git@gitlab.example.org:group/garden.git", Place("gitlab.example.org", "group/garden"), "gitlab"),
        ("https://git.example.org/ada/garden.git", Place("git.example.org", "ada/garden"), ""),
        ("https://evilgithub.com/ada/garden.git", Place("evilgithub.com", "ada/garden"), ""),
        ("/srv/git/garden.git", None, ""),
        ("../garden.git", None, ""),
        ("C:/garden/x.git", None, ""),
        ("file:///srv/git/garden.git", None, ""),
        ("", None, ""),
    ],
)
def test_whose_repository_a_remote_is(url: str, place: Place | None, known: str) -> None:
    assert forge.place_of(url) == place
    serving = forges.serving(place) if place else None
    assert (serving.ID if serving else "") == known


def test_addresses_that_a_person_opens() -> None:
    assert github.page(Place("github.com", "ada/garden"), "khms/inbox/a b", "main").endswith(
        "/main...khms/inbox/a%20b?expand=1"
    )
    found = gitlab.page(Place("gitlab.com", "ada/garden"), "khms/inbox/u", "main")
    assert found.startswith(
        "https://gitlab.com/ada/garden/-/merge_requests/new?merge_request%5Bsource_branch%5D=khms%2F"
    )


def test_no_job(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no CI job"):
        forges.this_job({})
    env = {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "../../x", "GITHUB_EVENT_PATH": str(tmp_path)}
    with pytest.raises(Unavailable, match="names no repository"):
        forges.this_job(env)
    with pytest.raises(Unavailable, match="event"):
        forges.this_job({**env, "GITHUB_REPOSITORY": "ada/garden"})


# GitLab


def job(url: str) -> Job:
    env = {
        "GITLAB_CI": "true",
        "CI_API_V4_URL": f"{url}/api/v4",
        "CI_PROJECT_ID": "7",
        "CI_COMMIT_BRANCH": "main",
        "CI_DEFAULT_BRANCH": "main",
        "CI_COMMIT_BEFORE_SHA": "0" * 40,
        "CI_COMMIT_SHA": "a" * 40,
        "CI_SERVER_HOST": "gitlab.example.org",
        "GITLAB_TOKEN": "glpat-secret",
    }
    return forges.this_job(env)


REQUEST = Request(3, "https://gitlab.example.org/ada/garden/-/merge_requests/3", "ada", "main", True, "b" * 40)


def test_a_gitlab_job_and_the_requests_of_a_commit(served: tuple[str, Answers]) -> None:
    url, answers = served
    made = job(url)
    assert (made.forge, made.before, made.after, made.branch) == ("gitlab", "", "a" * 40, "main")
    assert "glpat" not in repr(made)
    row = {
        "iid": 3,
        "web_url": REQUEST.url,
        "author": {"username": "ada"},
        "target_branch": "main",
        "target_project_id": 7,
        "state": "merged",
        "merge_commit_sha": None,
        "squash_commit_sha": "b" * 40,
        "sha": "c" * 40,
    }
    path = f"/api/v4/projects/7/repository/commits/{'b' * 40}/merge_requests?per_page=100"
    answers[path] = [row, {**row, "iid": 4, "target_project_id": 8}]
    (found,) = gitlab.requests_of(made, "b" * 40)
    assert (found.number, found.merged, found.merge, found.head) == (3, True, "b" * 40, "refs/merge-requests/3/head")
    assert answers["seen"][0][1]["Private-Token"] == "glpat-secret"


def test_a_gitlab_approval_saw_the_version_that_was_newest_then(served: tuple[str, Answers]) -> None:
    url, answers = served
    user = {"username": "bob", "name": "Bob", "state": "active", "id": 5}
    answers["/api/v4/projects/7/merge_requests/3/approvals"] = {
        "approved_by": [
            {"user": user, "approved_at": "2026-03-05T10:30:00.000Z"},
            {"user": {**user, "username": "eve"}, "approved_at": "2026-03-05T13:30:00.000+02:00"},
            {"user": {**user, "username": "old"}},
            {"user": {**user, "username": "project_7_bot_x"}, "approved_at": "2026-03-05T12:30:00.000Z"},
            {"user": {**user, "username": "gone", "state": "blocked"}, "approved_at": "2026-03-05T12:30:00.000Z"},
        ]
    }
    answers["/api/v4/projects/7/merge_requests/3/versions?per_page=100"] = [
        {"head_commit_sha": "2" * 40, "created_at": "2026-03-05T11:00:00.000Z"},
        {"head_commit_sha": "1" * 40, "created_at": "2026-03-05T10:00:00.000Z"},
    ]
    found = {review.login: review for review in gitlab.reviews(job(url), REQUEST)}
    assert {login: (review.commit[:1], review.person) for login, review in found.items()} == {
        "bob": ("1", True),
        "eve": ("2", True),
        "old": ("", True),
        "project_7_bot_x": ("2", False),
        "gone": ("2", False),
    }


def test_who_may_write_on_gitlab(served: tuple[str, Answers]) -> None:
    url, answers = served
    answers["/api/v4/users?username=bob"] = [{"username": "bob", "id": 5, "name": "Bob of the Garden"}]
    answers["/api/v4/users?username=eve"] = [{"username": "eve", "id": 6}]
    answers["/api/v4/users?username=joe"] = []
    answers["/api/v4/projects/7/members/all/5"] = {"access_level": 30}
    answers["/api/v4/projects/7/members/all/6"] = {"access_level": 20}
    made = job(url)
    assert [gitlab.may_write(made, login) for login in ("bob", "eve", "joe")] == [True, False, False]
    assert (gitlab.name(made, "bob"), gitlab.mail(made, "bob")) == (
        "Bob of the Garden",
        "bob@users.noreply.gitlab.example.org",
    )


def test_a_gitlab_job_without_a_token(served: tuple[str, Answers]) -> None:
    url, _ = served
    made = forges.this_job({
        "GITLAB_CI": "true", "CI_PROJECT_ID": "7", "CI_COMMIT_SHA": "a" * 40, "CI_API_V4_URL": url,
    })  # fmt: skip
    with pytest.raises(Unavailable, match="no token"):
        gitlab.reviews(made, REQUEST)


# Calls


def test_a_busy_host_is_asked_again_a_few_times(served: tuple[str, Answers]) -> None:
    url, answers = served
    answers["/x"] = [(503, {}), (429, {}, {"Retry-After": "0"}), (200, {"ok": 1})]
    assert forge.call(f"{url}/x", {})[0] == {"ok": 1}
    answers["/y"] = [(502, {"message": "bad gateway"})]
    with pytest.raises(Unavailable, match="502: bad gateway"):
        forge.call(f"{url}/y", {})
    assert sum(path == "/y" for path, _ in answers["seen"]) == 4
    answers["/z"] = [(403, {"message": "limit"}, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "99999999999"})]
    with pytest.raises(Unavailable, match="403"):
        forge.call(f"{url}/z", {})
    assert sum(path == "/z" for path, _ in answers["seen"]) == 1  # not waited for: it would take too long


def test_an_order_is_given_once(served: tuple[str, Answers]) -> None:
    url, answers = served
    answers["/x"] = [(503, {})]
    with pytest.raises(Unavailable, match="did not do it"):
        forge.call(f"{url}/x", {}, body={})
    assert len(answers["seen"]) == 1


def test_a_redirect_leads_nowhere_else(served: tuple[str, Answers]) -> None:
    url, answers = served
    answers["/moved"] = (301, {}, {"Location": f"{url}/here"})
    answers["/here"] = {"ok": 1}
    assert forge.call(f"{url}/moved", {"Authorization": "Bearer x"})[0] == {"ok": 1}
    answers["/away"] = (301, {}, {"Location": "http://127.0.0.1:9/steal"})
    with pytest.raises(Unavailable, match="301"):
        forge.call(f"{url}/away", {"Authorization": "Bearer x"})


@pytest.mark.parametrize("answer", [b"<html>", b"", b"[" * 100_000, {"message": "no list"}, [1, 2], [{}]])
def test_an_answer_that_is_not_what_the_api_promises(served: tuple[str, Answers], answer: Any) -> None:
    url, answers = served
    answers["/api/v4/projects/7/merge_requests/3/approvals"] = {"approved_by": []}
    answers["/api/v4/projects/7/merge_requests/3/versions?per_page=100"] = answer
    with pytest.raises(Unavailable):
        gitlab.reviews(job(url), REQUEST)


def test_pages_are_turned_over_on_the_same_host_and_not_for_ever(
    served: tuple[str, Answers], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, answers = served
    answers["/a"] = (200, [{"n": 1}], {"Link": f'<{url}/b>; rel="next", <{url}/z>; rel="last"'})
    answers["/b"] = [(200, [{"n": 2}])]
    assert forge.pages(f"{url}/a", {}) == [{"n": 1}, {"n": 2}]
    answers["/c"] = (200, [{"n": 1}], {"Link": '<https://evil.example/b>; rel="next"'})
    with pytest.raises(Unavailable, match="another host"):
        forge.pages(f"{url}/c", {})
    answers["/d"] = (200, [{"n": 1}], {"Link": f'<{url}/d>; rel="next"'})
    monkeypatch.setattr(forge, "PAGES", 3)
    with pytest.raises(Unavailable, match="more than 3 pages"):
        forge.pages(f"{url}/d", {})


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").split(") ")[1][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_program_that_hangs_is_ended_with_what_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from khms.hosts import program

    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text("#!/bin/sh\nsleep 300 & echo $! > pid\nwait\n", encoding="utf-8")
    (tmp_path / "bin" / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setattr(program, "SECONDS", 0.5)
    with pytest.raises(forge.Failed, match="did not end"):
        program.run("gh", folder=tmp_path)
    pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
    until = time.monotonic() + 60
    while _runs(pid):  # what was killed may not have been told yet
        assert time.monotonic() < until
    with pytest.raises(forge.Failed, match="is not on PATH"):
        program.run("no-such-program-here")
