"""GitLab: merge requests through `glab`, and what its REST API says of who approved one.

An approval there names no commit. It saw the version that was the newest when it was given: the times of the versions
tell, and an approval whose time the host does not tell saw none.
"""

import datetime
import urllib.parse
from collections.abc import Mapping
from typing import Any

from khms.errors import Unavailable
from khms.hosts import forge
from khms.hosts.forge import APPROVED, Failed, Job, Place, Request, Review, Run, pick
from khms.hosts.github import found

ID = "gitlab"
PROGRAM = "glab"
DEVELOPER = 30  # the least access level that may write


def serves(host: str) -> bool:
    return host == "gitlab.com" or host.startswith("gitlab.")


# Through glab, on a person's machine


def page(place: Place, branch: str, onto: str) -> str:
    """Where a person opens the merge request by hand."""
    query = {"merge_request[source_branch]": branch, "merge_request[target_branch]": onto}
    return f"https://{place.host}/{place.path}/-/merge_requests/new?{urllib.parse.urlencode(query)}"


def opened(run: Run, place: Place, branch: str, commit: str) -> str:
    """As for GitHub."""
    repository = f"https://{place.host}/{place.path}"
    status, out, err = run(
        PROGRAM, "mr", "list", "--repo", repository, "--source-branch", branch, "--all", "--output", "json"
    )
    if status:
        raise Failed(err or out or f"{PROGRAM} ended with {status}")
    return found(out, branch, commit, ("web_url", "state", "sha"), "opened")


def open(run: Run, place: Place, branch: str, onto: str, title: str, body: str) -> str:
    """Opens a merge request and returns its URL."""
    repository = f"https://{place.host}/{place.path}"
    asked = ("mr", "create", "--repo", repository, "--source-branch", branch, "--target-branch", onto)
    status, out, err = run(PROGRAM, *asked, "--title", title, "--description", body, "--yes")
    if status:
        raise Failed(err or out or f"{PROGRAM} ended with {status}")
    return next((word for word in reversed((out + " " + err).split()) if word.startswith("https://")), "")


# Over the API, in a job


def job(env: Mapping[str, str]) -> Job | None:
    """The job that this process is, None where it is none of GitLab's."""
    if env.get("GITLAB_CI") != "true":
        return None
    project = env.get("CI_PROJECT_ID", "")
    if not (project.isascii() and project.isdigit()):
        raise Unavailable("CI_PROJECT_ID names no project", where=project[:80])
    return Job(
        forge=ID,
        api=forge.checked(env.get("CI_API_V4_URL") or "https://gitlab.com/api/v4", "CI_API_V4_URL"),
        repository=project,
        branch=env.get("CI_COMMIT_BRANCH", ""),
        default=env.get("CI_DEFAULT_BRANCH", ""),
        before=forge.commit_id(env["CI_COMMIT_BEFORE_SHA"]) if env.get("CI_COMMIT_BEFORE_SHA") else "",
        after=forge.commit_id(env.get("CI_COMMIT_SHA", "")),
        server=env.get("CI_SERVER_HOST") or "gitlab.com",
        token=env.get("GITLAB_TOKEN") or "",
    )


def _headers(job: Job) -> dict[str, str]:
    if not job.token:
        raise Unavailable(
            "this job has no token that may read approvals",
            where="GITLAB_TOKEN",
            hint="put a project access token with the scope api into the variable GITLAB_TOKEN, masked and protected",
        )
    return {"PRIVATE-TOKEN": job.token}


def _url(job: Job, path: str, **query: str) -> str:
    return f"{job.api}/projects/{job.repository}/{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")


def requests_of(job: Job, commit: str) -> list[Request]:
    """The merge requests that brought a commit to this project."""
    rows = forge.pages(_url(job, f"repository/commits/{commit}/merge_requests", per_page="100"), _headers(job))
    return [_request(row) for row in rows if str(row.get("target_project_id")) == job.repository]


def _request(row: Mapping[str, Any]) -> Request:
    number = pick(row, "iid", int)
    made = (row.get(key) for key in ("merge_commit_sha", "squash_commit_sha", "sha"))
    return Request(
        number=number,
        url=pick(row, "web_url"),
        author=pick(row, "author.username"),
        base=pick(row, "target_branch"),
        merged=pick(row, "state") == "merged",
        merge=next((str(commit) for commit in made if commit), ""),
        head=f"refs/merge-requests/{number}/head",
    )


def reviews(job: Job, request: Request) -> list[Review]:
    """The approvals that stand, each with the head of the version that was the newest when it was given."""
    value, _ = forge.call(_url(job, f"merge_requests/{request.number}/approvals"), _headers(job))
    versions = [
        (_time(pick(row, "created_at")), pick(row, "head_commit_sha"))
        for row in forge.pages(_url(job, f"merge_requests/{request.number}/versions", per_page="100"), _headers(job))
    ]
    found = []
    for row in pick(value, "approved_by", list):
        login, at = pick(row, "user.username"), str(row.get("approved_at") or "")
        seen = max(((made, head) for made, head in versions if at and made <= _time(at)), default=(None, ""))[1]
        found.append(Review(login, APPROVED, seen, at, _is_person(row["user"], login)))
    return found


def _is_person(user: Mapping[str, Any], login: str) -> bool:
    """Access tokens of a project or group have an account of their own, named by them."""
    return not user.get("bot") and not login.startswith(("project_", "group_")) and user.get("state") == "active"


def _time(text: str) -> datetime.datetime:
    try:
        return datetime.datetime.fromisoformat(text).astimezone(datetime.UTC)
    except ValueError as error:
        raise Unavailable(f"the git host's answer has the time {text[:40]!r}") from error


def _user(job: Job, login: str) -> Mapping[str, Any] | None:
    query = urllib.parse.urlencode({"username": login})
    value, _ = forge.call(f"{job.api}/users?{query}", _headers(job))
    rows = value if isinstance(value, list) else []
    return next((row for row in rows if isinstance(row, Mapping) and row.get("username") == login), None)


def may_write(job: Job, login: str) -> bool:
    """Whether this person may write to the project."""
    user = _user(job, login)
    if user is None:
        return False
    value, _ = forge.call(_url(job, f"members/all/{pick(user, 'id', int)}"), _headers(job), missing=True)
    return value is not None and pick(value, "access_level", int) >= DEVELOPER


def name(job: Job, login: str) -> str:
    user = _user(job, login)
    return str(user.get("name") or login) if user else login


def mail(job: Job, login: str) -> str:
    return f"{login}@users.noreply.{job.server}"


def waiting(job: Job, branch: str) -> str:
    """The URL of the open merge request of a branch, empty where there is none."""
    rows = forge.pages(_url(job, "merge_requests", state="opened", source_branch=branch), _headers(job))
    return next((pick(row, "web_url") for row in rows), "")


def ask(job: Job, branch: str, title: str, body: str) -> str:
    """Opens a merge request from `branch` to the job's branch; returns its URL."""
    asked = {"title": title, "source_branch": branch, "target_branch": job.branch, "description": body}
    value, _ = forge.call(_url(job, "merge_requests"), _headers(job), body=asked)
    return str(pick(value, "web_url"))
