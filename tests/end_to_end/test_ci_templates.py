"""The CI templates at work: their steps are run by bash as the hosts' runners do, in real clones of a real repository.

Only the installation of khms is passed over: the one that runs the tests is used.
"""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from khms.hosts import ciworkflows
from khms.store.layout import Base

REVIEW, APPROVE = ".github/workflows/khms-review.yml", ".github/workflows/khms-approve.yml"
BIN = Path(sys.executable).parent
EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")
INSTALL = 'python -m pip install --quiet "$KHMS_PACKAGE"'

Git = Callable[..., str]


@dataclass
class Runner:
    """Runs `run` steps in `folder`; `values` are the expressions that the host would fill in, `said` what each step
    printed and its exit code, by name."""

    folder: Path
    values: Mapping[str, str]
    path: str = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    env: Mapping[str, str] = field(default_factory=dict)
    said: dict[str, "subprocess.CompletedProcess[str]"] = field(default_factory=dict)

    def github(self, name: str, job: str) -> int:
        """The steps of a job, as GitHub runs them: all after a failed one are passed over that do not say otherwise."""
        workflow = yaml.safe_load((self.folder / name).read_text(encoding="utf-8"))
        failed = 0
        for step in workflow["jobs"][job]["steps"]:
            if "run" not in step or step["run"] == INSTALL:
                continue
            if failed and step.get("if") != "success() || failure()":
                continue
            env = {**workflow["env"], **step.get("env", {})}
            done = self.run(["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]], env)
            self.said[step["name"]] = done
            failed = failed or done.returncode
        return failed

    def gitlab(self, job: str, **env: str) -> int:
        """The script of a job, as GitLab's shell executor runs it: one line after the other, until one fails."""
        jobs = yaml.safe_load((self.folder / ".gitlab/khms.yml").read_text(encoding="utf-8"))
        assert jobs[".khms"]["before_script"] == [INSTALL]
        script = "\n".join(jobs[job]["script"])
        done = self.run(["bash", "-eo", "pipefail", "-c", script], {**jobs[".khms"]["variables"], **env})
        self.said[job] = done
        return done.returncode

    def run(self, command: list[str], env: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
        filled = {name: EXPRESSION.sub(lambda found: self.values[found[1]], value) for name, value in env.items()}
        own = {"RUNNER_TEMP": str(self.folder.parent), "CI": "true", "PATH": self.path, **self.env}
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, **own, **filled},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )


@pytest.fixture
def project(tmp_path: Path, git: Git, write: Callable[..., Path], commit: Callable[..., str]) -> Path:
    """A repository with code, a base in .memory/ and all the workflows, and its bare origin beside it."""
    root = tmp_path / "project"
    git(tmp_path, "init", "--quiet", str(root))
    write(root, "code.py", "print()\n")
    done = subprocess.run([BIN / "khms", "init"], cwd=root, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    for host in ciworkflows.WORKFLOWS:
        ciworkflows.install(host, root, ".memory/", "main")
    commit(root, "code and workflows")
    git(tmp_path, "init", "--quiet", "--bare", "origin.git")
    git(root, "remote", "add", "origin", str(tmp_path / "origin.git"))
    git(root, "push", "--quiet", "origin", "main")
    git(tmp_path / "origin.git", "symbolic-ref", "HEAD", "refs/heads/main")
    return root


@pytest.fixture
def pulled(project: Path, git: Git) -> Callable[[], Runner]:
    """Opens a pull request with the project's branch `topic` and gives the runner in a checkout of its merge, as
    actions/checkout makes it."""

    def opened() -> Runner:
        base, head = git(project, "rev-parse", "main"), git(project, "rev-parse", "topic")
        git(project, "switch", "--quiet", "--detach", "main")
        git(project, "merge", "--quiet", "--no-ff", "-m", "merge", head)
        git(project, "push", "--quiet", "origin", "HEAD:refs/pull/1/merge", "topic")
        git(project, "switch", "--quiet", "topic")
        checkout = project.parent / "checkout"
        git(project.parent, "init", "--quiet", str(checkout))
        git(checkout, "remote", "add", "origin", str(project.parent / "origin.git"))
        refs = ("+refs/heads/*:refs/remotes/origin/*", "+refs/pull/1/merge:refs/remotes/pull/1/merge")
        git(checkout, "fetch", "--quiet", "origin", *refs)
        git(checkout, "checkout", "--quiet", "--detach", "refs/remotes/pull/1/merge")
        return Runner(checkout, {"github.event.pull_request.base.sha": base})

    return opened


def test_a_pull_request_that_brings_a_candidate_passes(
    project: Path, pulled: Callable[[], Runner], git: Git, write: Callable[..., Path], commit: Callable[..., str]
) -> None:
    git(project, "switch", "--quiet", "--create", "topic")
    write(project, ".memory/journal/2026-11-30.md", "# 2026-11-30\n\nMARK[decision] water in the morning\n")
    commit(project, "a note")
    write(project, "code.py", "print(1)\n")
    commit(project, "and code")
    git(project, "switch", "--quiet", "main")
    write(project, "other.py", "meanwhile on main\n")
    commit(project, "meanwhile")
    runner = pulled()
    assert runner.github(REVIEW, "review") == 0, runner.said
    assert "::" not in runner.said["Lint"].stdout + runner.said["Audit"].stdout


def test_a_pull_request_that_brings_a_card_fails_with_annotations(
    project: Path, pulled: Callable[[], Runner], git: Git, add_card: Callable[..., Path], commit: Callable[..., str]
) -> None:
    git(project, "switch", "--quiet", "--create", "topic")
    add_card(Base(project / ".memory"), "K-00001", level="obs")
    commit(project, "a card slipped in")
    git(project, "switch", "--quiet", "main")
    runner = pulled()
    assert runner.github(REVIEW, "review") == 1
    lint, audit = runner.said["Lint"], runner.said["Audit"]
    assert lint.returncode == 1 and "::error file=.memory/memory/know/K-00001.md,line=4,title=KH001::" in lint.stdout
    assert audit.returncode == 1 and re.search(
        r"^::error file=\.memory/memory/know/K-00001\.md(,line=\d+)?,title=KA001::", audit.stdout, re.MULTILINE
    ), audit


def test_a_shallow_clone_is_an_error_of_its_own(
    project: Path, pulled: Callable[[], Runner], git: Git, write: Callable[..., Path], commit: Callable[..., str]
) -> None:
    git(project, "switch", "--quiet", "--create", "topic")
    write(project, ".memory/journal/2026-11-30.md", "# 2026-11-30\n\nMARK[decision] x\n")
    commit(project, "a note")
    git(project, "switch", "--quiet", "main")
    runner = pulled()
    tip = git(runner.folder, "rev-parse", "HEAD")
    (runner.folder / ".git/shallow").write_text(f"{tip}\n", encoding="utf-8")
    assert runner.github(REVIEW, "review") == 4
    assert "shallow" in runner.said["Audit"].stderr and runner.said["Audit"].returncode == 4


def test_the_jobs_of_gitlab_report_a_card(
    project: Path, pulled: Callable[[], Runner], git: Git, add_card: Callable[..., Path], commit: Callable[..., str]
) -> None:
    git(project, "switch", "--quiet", "--create", "topic")
    add_card(Base(project / ".memory"), "K-00001", level="obs")
    commit(project, "a card slipped in")
    git(project, "switch", "--quiet", "main")
    runner = pulled()
    base = git(project, "rev-parse", "main")
    for name, env in (
        ("", {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base}),
        ("TARGET", {"CI_MERGE_REQUEST_TARGET_BRANCH_SHA": base}),
    ):
        for job, code in (("khms-lint", "KH001"), ("khms-audit", "KA001")):
            assert runner.gitlab(job, **env) == 1, (name, runner.said[job])
            report = json.loads((runner.folder / f"{job}.json").read_text(encoding="utf-8"))
            assert code in {entry["check_name"] for entry in report}
            assert {entry["location"]["path"] for entry in report} == {".memory/memory/know/K-00001.md"}


APPROVING = pytest.mark.parametrize("host", ["github", "gitlab"])


@dataclass
class Job:
    """The job that approves, after a push of the project's `main` from `before` on; `answers` are those of the host's
    API, by the end of what is asked for: there is no request, unless told otherwise."""

    project: Path
    git: Git
    before: str
    api: str
    path: str
    answers: dict[str, object]

    def run(self, host: str, **env: str) -> "subprocess.CompletedProcess[str]":
        checkout = self.project.parent / "checkout"
        origin = self.project.parent / "origin.git"
        self.git(self.project.parent, "clone", "--quiet", str(origin), str(checkout))
        after = self.git(checkout, "rev-parse", "HEAD")
        runner = Runner(checkout, {"github.token": "t", "secrets.KHMS_SIGNING_KEY": env.pop("KEY", "")}, path=self.path)
        if host == "github":
            event = self.project.parent / "event.json"
            pushed = {"ref": "refs/heads/main", "before": self.before, "after": after}
            event.write_text(json.dumps({**pushed, "repository": {"default_branch": "main"}}), encoding="utf-8")
            own = {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": str(event), "GITHUB_API_URL": self.api}
            runner.env = {**own, "GITHUB_REPOSITORY": "ada/project", **env}
            runner.github(APPROVE, "approve")
            return runner.said["Approve"]
        place = "https://khms:t@git.example:443/ada/project.git"
        self.git(checkout, "config", f"url.file://{origin}.pushInsteadOf", place)
        self.git(checkout, "config", f"url.file://{origin}.insteadOf", place)
        self.git(checkout, "checkout", "--quiet", "--detach")
        server = {"CI_SERVER_PROTOCOL": "https", "CI_SERVER_HOST": "git.example", "CI_SERVER_PORT": "443"}
        commits = {"CI_COMMIT_BRANCH": "main", "CI_COMMIT_BEFORE_SHA": self.before, "CI_COMMIT_SHA": after}
        names = {"GITLAB_CI": "true", "CI_DEFAULT_BRANCH": "main", "CI_PROJECT_ID": "7", "CI_API_V4_URL": self.api}
        more = {"CI_PROJECT_PATH": "ada/project", "GITLAB_TOKEN": "t"}
        runner.gitlab("khms-approve", **server, **commits, **names, **more, **env)
        return runner.said["khms-approve"]


@pytest.fixture
def job(project: Path, git: Git) -> Iterator[Job]:
    """With the host's API on loopback."""
    answers: dict[str, object] = {}

    class Host(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.path.partition("?")[0]
            found = next((answer for end, answer in answers.items() if asked.endswith(end)), [])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Host) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        api = f"http://127.0.0.1:{server.server_port}"
        yield Job(project, git, git(project, "rev-parse", "HEAD"), api, Runner.path, answers)
        server.shutdown()
        thread.join()


@APPROVING
def test_a_push_without_a_unit_has_nothing_to_approve(
    job: Job, git: Git, write: Callable[..., Path], commit: Callable[..., str], host: str
) -> None:
    write(job.project, ".memory/journal/2026-11-30.md", "# 2026-11-30\n\nMARK[decision] x\n")
    commit(job.project, "a note")
    git(job.project, "push", "--quiet", "origin", "main")
    done = job.run(host)
    assert done.returncode == 0 and "no unit came in" in done.stdout, done


@APPROVING
def test_a_unit_that_nobody_reviewed_stays_where_it_is(
    job: Job, git: Git, write: Callable[..., Path], commit: Callable[..., str], host: str
) -> None:
    base = job.project / ".memory"
    for words in (["mark", "decision", "water in the morning, the tray dries out by ten"], ["nightly"]):
        done = subprocess.run([BIN / "khms", "--root", base, *words], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
    git(job.project, "push", "--quiet", "origin", "main")
    tip = git(job.project, "rev-parse", "HEAD")
    done = job.run(host)
    assert done.returncode == 3 and "refused" in done.stdout, done
    assert git(job.project.parent / "origin.git", "for-each-ref", "--format=%(objectname)").split() == [tip]


def test_what_a_reviewer_approved_comes_in_and_holds_before_the_audit(job: Job, git: Git, tmp_path: Path) -> None:
    """The whole way on GitHub, but for its own servers: a pull request with a unit is approved, merged and taken in."""
    base = job.project / ".memory"
    git(job.project, "switch", "--quiet", "--create", "khms/inbox/one")
    for words in (["mark", "decision", "water in the morning, the tray dries out by ten"], ["nightly"]):
        done = subprocess.run([BIN / "khms", "--root", base, *words], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
    (candidate,) = base.glob("memory/inbox/*/C1.md")
    text = candidate.read_text(encoding="utf-8")
    assert "kind: unjudged" in text
    candidate.write_text(text.replace("kind: unjudged", "kind: new"), encoding="utf-8")
    git(job.project, "commit", "--quiet", "--all", "-m", "the reviewer settled how it stands")
    seen = git(job.project, "rev-parse", "HEAD")
    git(job.project, "push", "--quiet", "origin", "khms/inbox/one")
    git(job.project, "switch", "--quiet", "main")
    git(job.project, "merge", "--quiet", "--no-ff", "-m", "Merge pull request #1", "khms/inbox/one")
    git(job.project, "push", "--quiet", "origin", "main")
    merge = git(job.project, "rev-parse", "HEAD")
    onto = {"ref": "main", "repo": {"full_name": "ada/project"}}
    request = {
        "number": 1,
        "html_url": "https://github.com/ada/project/pull/1",
        "user": {"login": "robot"},
        "base": onto,
    }
    review = {"state": "APPROVED", "user": {"login": "grace", "type": "User"}, "author_association": "MEMBER"}
    job.answers |= {
        "/pulls": [{**request, "merged_at": "2026-11-30T20:00:00Z", "merge_commit_sha": merge}],
        "/reviews": [{**review, "commit_id": seen, "submitted_at": "2026-11-30T19:59:00Z"}],
        "/permission": {"permission": "write"},
        "/grace": {"name": "Grace Reviewer"},
    }
    done = job.run("github")
    assert done.returncode == 0 and "C1 -> K-00001" in done.stdout, done
    fresh = tmp_path / "fresh"
    git(tmp_path, "clone", "--quiet", str(tmp_path / "origin.git"), str(fresh))
    (record,) = (fresh / ".memory/memory/approvals").glob("*.json")
    reviewer = json.loads(record.read_bytes())["reviewer"]
    assert reviewer.startswith("Grace Reviewer <grace@") and (fresh / ".memory/memory/know/K-00001.md").exists()
    done = subprocess.run([BIN / "khms", "audit"], cwd=fresh / ".memory", capture_output=True, check=False)
    assert done.returncode == 0, done.stdout


@APPROVING
def test_the_signing_key_is_for_the_job_alone(job: Job, tmp_path: Path, host: str) -> None:
    """A stand-in for khms looks at what it is given."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "khms").write_text(
        f'#!/bin/sh\nexec > "{tmp_path}/given"\necho "$*"\nls -l "$KHMS_SIGNING_KEY"\ncat "$KHMS_SIGNING_KEY"\n'
        "git remote get-url --push origin\nenv | grep -c PRIVATE\nexit 5\n",
        encoding="utf-8",
    )
    (tools / "khms").chmod(0o755)
    job.path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    file = tmp_path / "variable"
    file.write_bytes(b"PRIVATE\r\nKEY\r\n")
    done = job.run(host, **({"KEY": "PRIVATE\nKEY\r"} if host == "github" else {"SIGNING_KEY": str(file)}))
    assert done.returncode == 5, "its answer is the job's"
    said, rights, *key, url, seen = (tmp_path / "given").read_text(encoding="utf-8").splitlines()
    assert said == "--root .memory approve --merged" and rights.startswith("-rw-------") and key == ["PRIVATE", "KEY"]
    assert seen == "0" and "PRIVATE" not in done.stdout + done.stderr
    if host == "gitlab":
        assert url.endswith("origin.git") and not Path(rights.split()[-1]).exists()


def test_install_is_what_was_left_out(project: Path) -> None:
    """The steps that these tests pass over are khms's installation and nothing else."""
    for name in (REVIEW, APPROVE):
        workflow: dict[Any, Any] = yaml.safe_load((project / name).read_text(encoding="utf-8"))
        runs = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
        assert runs.count(INSTALL) == 1 and re.fullmatch(r"khms==\d+\.\d+\.\d+", workflow["env"]["KHMS_PACKAGE"])
