"""What khms knows of a git host: values, and the calls over HTTP that a CI job makes. A host is one file (`github.py`,
`gitlab.py`) and one row in `forges.py`.

Calls are few and bounded: a time limit each, a limit on what is read, a few tries where the host is busy. A token goes
to the host that the job named and to no other: a redirect that leads elsewhere is refused. No message holds it.
"""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any, Protocol

from khms.errors import KhmsError, Refused, Unavailable

SECONDS = 20.0  # of one call
LARGEST = 8 * 1024 * 1024  # bytes of one answer
PAGES = 50  # of one list
PAUSES = (1.0, 4.0, 15.0)  # seconds before each further try
LONGEST = 60.0  # seconds that a host's own word (Retry-After) is waited for
APPROVED, CHANGES, DISMISSED = "approved", "changes", "dismissed"


@dataclass(frozen=True, slots=True)
class Place:
    """A repository on a host: `github.com` and `owner/name`."""

    host: str
    path: str


@dataclass(frozen=True, slots=True)
class Request:
    """A pull (merge) request. `merged` says that it was merged, `merge` the commit that this made, `base` the branch
    that received it; `head` is a ref under which the host still keeps its commits."""

    number: int
    url: str
    author: str
    base: str
    merged: bool
    merge: str = ""
    head: str = ""


@dataclass(frozen=True, slots=True)
class Review:
    """The last word of one person about a request. `commit` is the one they saw, empty where the host does not tell;
    `person` is false for bots and applications."""

    login: str
    state: str
    commit: str
    at: str
    person: bool = True


@dataclass(frozen=True, slots=True)
class Job:
    """The CI job that this process is: what was pushed (`before` is empty for a new branch), and how to ask its host.
    `token` is shown nowhere."""

    forge: str
    api: str
    repository: str
    branch: str
    default: str
    before: str
    after: str
    server: str
    token: str = field(default="", repr=False)


Run = Callable[..., tuple[int, str, str]]


class Forge(Protocol):
    """What a module of a host offers."""

    ID: str
    PROGRAM: str

    def serves(self, host: str) -> bool: ...
    def job(self, env: Mapping[str, str]) -> Job | None: ...
    def page(self, place: Place, branch: str, onto: str) -> str: ...
    def opened(self, run: Run, place: Place, branch: str, commit: str) -> str: ...
    def open(self, run: Run, place: Place, branch: str, onto: str, title: str, body: str) -> str: ...
    def requests_of(self, job: Job, commit: str) -> list[Request]: ...
    def reviews(self, job: Job, request: Request) -> list[Review]: ...
    def may_write(self, job: Job, login: str) -> bool: ...
    def name(self, job: Job, login: str) -> str: ...
    def mail(self, job: Job, login: str) -> str: ...
    def waiting(self, job: Job, branch: str) -> str: ...
    def ask(self, job: Job, branch: str, title: str, body: str) -> str: ...


def place_of(url: str) -> Place | None:
    """The repository that a remote's URL names, None for a path or what else names no host. What stands there of a
    user or a password is left out."""
    if "://" in url:
        parts = urllib.parse.urlsplit(url)
        host, path = parts.hostname or "", parts.path
        if parts.scheme not in ("https", "http", "ssh", "git+ssh"):
            return None
    else:
        before, colon, path = url.partition(":")
        host = before.rpartition("@")[2]
        if not colon or "/" in before or len(host) < 2:
            return None
    path = path.strip("/").removesuffix(".git")
    return Place(host.lower(), path) if host and path.count("/") >= 1 else None


class _Same(urllib.request.HTTPRedirectHandler):
    """Follows a redirect within the host that was asked, and no other."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str) -> Any:
        if origin(newurl) != origin(req.full_url):
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def origin(url: str) -> tuple[str, str]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.netloc


def checked(url: str, where: str) -> str:
    """An API's address without a last slash; raises Refused for one that would send the token in the clear."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")):
        return url.rstrip("/")
    raise Refused(f"{where} is no https address", where=url, hint=f"{where} is set by the host's own job")


def call(
    url: str, headers: Mapping[str, str], *, body: object = None, missing: bool = False
) -> tuple[Any, Mapping[str, str]]:
    """One call: the JSON answer, and the answer's headers. With `body` it is a POST, which is tried once. Raises
    Unavailable with the host's words; with `missing` a 404 answers None."""
    pauses = PAUSES if body is None else ()
    for at in range(len(pauses) + 1):
        try:
            return _once(url, headers, body)
        except urllib.error.HTTPError as error:
            with error:
                said = _words(error.read(10_000))
            if error.code == 404 and missing:
                return None, {}
            wait = _wait(error.code, dict(error.headers.items()), at, pauses)
            if wait is None:
                raise _failed(url, f"it answered {error.code}{f': {said}' if said else ''}", body is None) from error
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            if at == len(pauses):
                raise _failed(url, str(reason) or type(error).__name__) from error
            wait = pauses[at]
        time.sleep(wait)
    raise AssertionError("unreachable")


def _once(url: str, headers: Mapping[str, str], body: object) -> tuple[Any, Mapping[str, str]]:
    data = None if body is None else json.dumps(body).encode("utf-8")
    kind = {"Content-Type": "application/json"} if data else {}
    request = urllib.request.Request(url, data, {**headers, **kind, "User-Agent": "khms"})
    here = urllib.parse.urlsplit(url).hostname in ("127.0.0.1", "::1", "localhost")
    proxies = [urllib.request.ProxyHandler({})] if here else []
    with urllib.request.build_opener(_Same, *proxies).open(request, timeout=SECONDS) as answer:
        text = answer.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise ValueError("the answer is too long")
        try:
            return json.loads(text), answer.headers
        except RecursionError as error:
            raise ValueError("the answer is nested too deeply") from error


def _wait(code: int, heads: Mapping[str, str], at: int, pauses: Sequence[float]) -> float | None:
    """Seconds before the next try, None where there is none: the host is busy (5xx, 429) or a limit was reached."""
    headers = {name.lower(): value for name, value in heads.items()}
    limited = code == 429 or (code == 403 and (headers.get("x-ratelimit-remaining") == "0" or "retry-after" in headers))
    if at >= len(pauses) or not (limited or code >= 500):
        return None
    try:
        told = float(headers.get("retry-after") or float(headers.get("x-ratelimit-reset") or 0) - time.time())
    except ValueError:
        told = 0.0
    if limited and told > LONGEST:
        return None
    return max(pauses[at], told) if limited else pauses[at]


def _words(data: bytes) -> str:
    try:
        value = json.loads(data)
    except ValueError:
        return ""
    said = value.get("message") or value.get("error") if isinstance(value, dict) else ""
    return " ".join(str(said or "").split())[:200]


def _failed(url: str, why: str, asking: bool = True) -> Unavailable:
    """`asking` tells a question from an order, which a job may lack the right to give."""
    parts = urllib.parse.urlsplit(url)
    return Unavailable(
        f"the git host did not answer: {why}" if asking else f"the git host did not do it: {why}",
        where=f"{parts.scheme}://{parts.netloc}{parts.path}",
        hint="run the job again"
        if asking
        else "let the job open requests (GitHub: pull-requests: write), run it again",
    )


def pages(url: str, headers: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every item of a list over all of its pages."""
    found: list[dict[str, Any]] = []
    following, first = url, origin(url)
    for _ in range(PAGES):
        value, heads = call(following, headers)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise _failed(following, "its answer is no list")
        found += value
        following = _next(heads.get("link") or "")
        if not following:
            return found
        if origin(following) != first:
            raise _failed(url, "its next page is on another host")
    raise _failed(url, f"the list has more than {PAGES} pages")


def _next(link: str) -> str:
    for part in link.split(","):
        address, _, rest = part.strip().partition(";")
        if 'rel="next"' in rest and address.startswith("<") and address.endswith(">"):
            return address[1:-1]
    return ""


def pick(value: object, path: str, kind: type | tuple[type, ...] = str) -> Any:
    """The value at a dotted path of an answer; raises Unavailable where it is not there or of another kind: what
    cannot be read approves nobody."""
    here: Any = value
    for key in path.split("."):
        here = here.get(key) if isinstance(here, Mapping) else None
    if not isinstance(here, kind) or (isinstance(here, bool) and kind is int):
        raise Unavailable(f"the git host's answer has no {path}", hint="run the job again")
    return here


def event(env: Mapping[str, str], name: str) -> dict[str, Any]:
    """The JSON file that the job's environment names; raises Unavailable where it cannot be read."""
    path = env.get(name, "")
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Unavailable(f"the job's event cannot be read: {error}", where=path or name) from error
    return value if isinstance(value, dict) else {}


def commit_id(text: str) -> str:
    """`text` if it is a commit's id, empty for the zeros that stand for none; raises Unavailable else."""
    if len(text) in (40, 64) and all(char in "0123456789abcdef" for char in text):
        return "" if set(text) == {"0"} else text
    raise Unavailable(f"{text[:80]!r} is no commit", hint="the job's event names the pushed commits")


class Failed(KhmsError):
    """A host's program did not do what it was asked; its own words."""

    exit_code = 4
