"""GitHub: pull requests through `gh`, and what its REST API says of who approved one.

Anybody who can see a repository may leave an approving review, so only one of somebody who may write there counts.
"""

import json
import re
import urllib.parse
from collections.abc import Mapping
from typing import Any

from khms.errors import Unavailable
from khms.hosts import forge
from khms.hosts.forge import APPROVED, CHANGES, DISMISSED, Failed, Job, Place, Request, Review, Run, pick

ID = "github"
PROGRAM = "gh"
_STATES = {"APPROVED": APPROVED, "CHANGES_REQUESTED": CHANGES, "DISMISSED": DISMISSED}
_WRITERS = ("admin", "maintain", "write")
_INSIDERS = ("OWNER", "MEMBER", "COLLABORATOR")


def serves(host: str) -> bool:
    return host == "github.com" or host.startswith("github.") or host.endswith(".ghe.com")


# Through gh, on a person's machine


def page(place: Place, branch: str, onto: str) -> str:
    """Where a person opens the pull request by hand."""
    quoted = urllib.parse.quote(branch), urllib.parse.quote(onto)
    return f"https://{place.host}/{place.path}/compare/{quoted[1]}...{quoted[0]}?expand=1"


def opened(run: Run, place: Place, branch: str, commit: str) -> str:
    """The URL of the pull request that was opened for the branch: an open one, or one that ended with these very
    commits; empty where there is none."""
    repository = f"{place.host}/{place.path}"
    asked = ("pr", "list", "--repo", repository, "--head", branch, "--state", "all", "--limit", "50")
    status, out, err = run(PROGRAM, *asked, "--json", "url,state,headRefOid")
    if status:
        raise Failed(err or out or f"{PROGRAM} ended with {status}")
    return found(out, branch, commit, ("url", "state", "headRefOid"), "OPEN")


def found(out: str, branch: str, commit: str, keys: tuple[str, str, str], is_open: str) -> str:
    """The URL in a program's list; raises Failed where the list cannot be read."""
    try:
        rows = [tuple(str(row[key]) for key in keys) for row in json.loads(out or "[]")]
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise Failed(f"the list of requests of {branch} cannot be read") from error
    rows.sort(key=lambda row: row[1] != is_open)
    return next((url for url, state, head in rows if state == is_open or head == commit), "")


def open(run: Run, place: Place, branch: str, onto: str, title: str, body: str) -> str:
    """Opens a pull request and returns its URL."""
    repository = f"{place.host}/{place.path}"
    asked = ("pr", "create", "--repo", repository, "--head", branch, "--base", onto, "--title", title)
    status, out, err = run(PROGRAM, *asked, "--body-file", "-", stdin=body)
    if status:
        raise Failed(err or out or f"{PROGRAM} ended with {status}")
    return next((word for word in reversed(out.split()) if word.startswith("https://")), "")


# Over the API, in a job


def job(env: Mapping[str, str]) -> Job | None:
    """The job that this process is, None where it is none of GitHub's."""
    if env.get("GITHUB_ACTIONS") != "true":
        return None
    repository = env.get("GITHUB_REPOSITORY", "")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise Unavailable("GITHUB_REPOSITORY names no repository", where=repository[:80])
    event = forge.event(env, "GITHUB_EVENT_PATH")
    about = event.get("repository")
    default = about.get("default_branch") if isinstance(about, Mapping) else ""
    pushed = str(event.get("ref") or env.get("GITHUB_REF", ""))
    return Job(
        forge=ID,
        api=forge.checked(env.get("GITHUB_API_URL") or "https://api.github.com", "GITHUB_API_URL"),
        repository=repository,
        branch=pushed.removeprefix("refs/heads/") if pushed.startswith("refs/heads/") else "",
        default=default if isinstance(default, str) else "",
        before=forge.commit_id(str(event["before"])) if event.get("before") else "",
        after=forge.commit_id(str(event.get("after") or env.get("GITHUB_SHA", ""))),
        server=urllib.parse.urlsplit(env.get("GITHUB_SERVER_URL") or "https://github.com").hostname or "github.com",
        token=env.get("GITHUB_TOKEN") or env.get("GH_TOKEN") or "",
    )


def _headers(job: Job) -> dict[str, str]:
    held = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
    return held | ({"Authorization": f"Bearer {job.token}"} if job.token else {})


def _url(job: Job, path: str, **query: str) -> str:
    return f"{job.api}/repos/{job.repository}/{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")


def requests_of(job: Job, commit: str) -> list[Request]:
    """The pull requests that brought a commit to this repository."""
    rows = forge.pages(_url(job, f"commits/{commit}/pulls", per_page="100"), _headers(job))
    return [_request(row) for row in rows if pick(row, "base.repo.full_name").lower() == job.repository.lower()]


def _request(row: Mapping[str, Any]) -> Request:
    number = pick(row, "number", int)
    return Request(
        number=number,
        url=pick(row, "html_url"),
        author=_login(row.get("user")),
        base=pick(row, "base.ref"),
        merged=bool(pick(row, "merged_at", (str, type(None)))),
        merge=pick(row, "merge_commit_sha", (str, type(None))) or "",
        head=f"refs/pull/{number}/head",
    )


def _login(user: object) -> str:
    """Empty for an account that is gone."""
    return str(pick(user, "login")) if user is not None else ""


def reviews(job: Job, request: Request) -> list[Review]:
    """The last word of each reviewer. A comment changes nothing; a dismissed review has been taken back; one whose
    commit the host no longer has tells nothing."""
    rows = forge.pages(_url(job, f"pulls/{request.number}/reviews", per_page="100"), _headers(job))
    last: dict[str, Review] = {}
    for row in rows:
        state = _STATES.get(pick(row, "state"))
        if state is None or row.get("user") is None:
            continue
        login = _login(row["user"])
        insider = row.get("author_association") in _INSIDERS
        person = pick(row, "user.type") == "User" and not login.endswith("[bot]") and insider
        seen = pick(row, "commit_id", (str, type(None))) or ""
        last[login] = Review(login, state, seen, str(row.get("submitted_at") or ""), person)
    return list(last.values())


def may_write(job: Job, login: str) -> bool:
    """Whether this person may write to the repository."""
    path = f"collaborators/{urllib.parse.quote(login, safe='')}/permission"
    value, _ = forge.call(_url(job, path), _headers(job), missing=True)
    return value is not None and pick(value, "permission") in _WRITERS


def name(job: Job, login: str) -> str:
    """The name that a person gives of themselves, else the login."""
    url = f"{job.api}/users/{urllib.parse.quote(login, safe='')}"
    value, _ = forge.call(url, _headers(job), missing=True)
    return str(pick(value, "name", (str, type(None))) or login) if value is not None else login


def mail(job: Job, login: str) -> str:
    return f"{login}@users.noreply.{job.server}"


def waiting(job: Job, branch: str) -> str:
    """The URL of the open pull request of a branch of this repository, empty where there is none."""
    owner = job.repository.partition("/")[0]
    rows = forge.pages(_url(job, "pulls", state="open", head=f"{owner}:{branch}", per_page="100"), _headers(job))
    return next((pick(row, "html_url") for row in rows if pick(row, "head.ref") == branch), "")


def ask(job: Job, branch: str, title: str, body: str) -> str:
    """Opens a pull request from `branch` to the job's branch; returns its URL."""
    asked = {"title": title, "head": branch, "base": job.branch, "body": body}
    value, _ = forge.call(_url(job, "pulls"), _headers(job), body=asked)
    return str(pick(value, "html_url"))
