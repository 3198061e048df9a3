"""Everything that can be wrong with a base and its surroundings, one check after the other, and the mending of what can
be mended without a person's judgement.

A check is a function that yields results; one that fails unexpectedly is reported and hides no other. Adding a check is
a function and its line in CHECKS.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property

from khms import config as configuration
from khms.config import Config
from khms.errors import Busy, KhmsError
from khms.measure.status import Problem, of_error, of_finding
from khms.store import cards, commit, files, inbox, lock, receipts, tags
from khms.store.layout import Base
from khms.store.leftovers import leftovers
from khms.store.repo import Repo

GIT = (2, 36)
OK, MENDED, NOTE, BAD = "ok", "mended", "note", "bad"


@dataclass(frozen=True, slots=True)
class Result:
    """`state`: ok; mended just now; note (works, but worth knowing); bad (does not work until someone acts)."""

    check: str
    state: str
    message: str
    where: str = ""
    mend: str = ""

    def as_json(self) -> dict[str, str]:
        return asdict(self)


@dataclass
class Patient:
    """The base under examination. `repair` allows mending what is derived or left over."""

    base: Base
    repair: bool

    @cached_property
    def repo(self) -> Repo:
        """Raises Unavailable where the base has no repository."""
        repo = Repo(self.base.root)
        repo.top  # noqa: B018  raises
        return repo

    @cached_property
    def config(self) -> Config:
        """The defaults where the base's own file cannot be read; that has its own check."""
        try:
            return configuration.load(self.base.root)
        except KhmsError:
            return Config([])


Check = Callable[[Patient], Iterator[Result]]


def examine(base: Base, *, repair: bool = False) -> list[Result]:
    """Runs every check. With `repair`, what can be mended is; an interrupted command is finished or undone always. What
    stops several checks alike, such as no git, is told once, by the first."""
    patient = Patient(base, repair)
    found: list[Result] = []
    stopped: set[Problem] = set()
    for name, check in CHECKS.items():
        try:
            found += check(patient)
        except KhmsError as error:
            problem = of_error(error)
            if problem not in stopped:
                found.append(_bad(name, problem))
            stopped.add(problem)
    return found


def _bad(check: str, problem: Problem) -> Result:
    return Result(check, BAD, problem.message, problem.where, problem.mend)


def _git(patient: Patient) -> Iterator[Result]:
    said = Repo(patient.base.root).text("version").split()
    version = said[2] if len(said) > 2 else "?"
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < GIT:
        yield Result("git", BAD, f"git {version} is too old", mend="install git 2.36 or newer")
    else:
        yield Result("git", OK, f"git {version}")


def _identity(patient: Patient) -> Iterator[Result]:
    yield Result("identity", OK, Repo(patient.base.root).identity())


def _settings(patient: Patient) -> Iterator[Result]:
    for path in (configuration.user_folder() / "config.toml", patient.base.config):
        try:
            configuration.read(path)
        except KhmsError as error:
            yield _bad("settings", of_error(error))
        else:
            yield Result("settings", OK, f"{path}" if path.exists() else f"{path} (not there: defaults)")


def _repository(patient: Patient) -> Iterator[Result]:
    from khms.pipeline import authority

    repo = patient.repo
    busy = repo.operation()
    if busy:
        yield Result("repository", BAD, f"{busy} is in progress", str(repo.root), "finish or abort it")
    branch, receiving = repo.branch(), authority.receiving_branch(repo, patient.config)
    if not branch:
        yield Result("repository", NOTE, "HEAD is on no branch", str(repo.root), f"git switch {receiving or 'BRANCH'}")
    elif branch != receiving:
        yield Result("repository", NOTE, f"HEAD is on {branch}, approvals belong on {receiving}", str(repo.root))
    if repo.text("rev-parse", "--is-shallow-repository") == "true":
        yield Result("repository", NOTE, "the history is cut short here", str(repo.root), "git fetch --unshallow")
    if repo.head() is not None:
        changed = repo.dirty("memory/know", "memory/archive/know")
        for path in (path for path in changed if files.TEMPORARY not in path):
            yield Result("repository", BAD, "a card differs from what was committed", path, f"git diff -- {path}")
    yield Result("repository", OK, f"{repo.top} on {branch or 'no branch'}")


def _interrupted(patient: Patient) -> Iterator[Result]:
    repo = patient.repo
    path = commit.lock_path(repo)
    if lock.held(path):
        yield Result("interrupted", NOTE, f"another command is at work: {lock.holder(path)}", str(path))
        return
    left = commit.pending(repo)
    try:
        with commit.exclusive(repo, "doctor", wait=0.0) as tx:
            if tx.recovered:
                kept = "look at the files that were kept: git status" if tx.recovered.kept else ""
                yield Result("interrupted", MENDED, str(tx.recovered), str(repo.root), kept)
    except Busy as error:
        yield Result("interrupted", NOTE, error.message, error.where)
        return
    if (repo.folder / "index.lock").exists():
        mend = f"if no git command is running: rm {repo.folder / 'index.lock'}"
        yield Result("interrupted", BAD, "git's own lock stands here", str(repo.folder / "index.lock"), mend)
    elif left is None:
        yield Result("interrupted", OK, "no command was cut off")


def _leftovers(patient: Patient) -> Iterator[Result]:
    """Temporary files of processes that are gone."""
    found = leftovers(patient.base.root)
    for path in found:
        shown = patient.base.relative(path)
        if patient.repair:
            files.remove_tree(path)
            yield Result("leftovers", MENDED, "removed what a killed command left", shown)
        else:
            yield Result("leftovers", NOTE, "a killed command left this", shown, "khms doctor --repair removes it")
    if not found:
        yield Result("leftovers", OK, "no temporary files")


def _readable(patient: Patient) -> Iterator[Result]:
    """Every file of the base that cannot be read, each by name and line."""
    from khms.pipeline import sources

    base = patient.base
    shelf = cards.shelf(base)
    problems = [of_error(error) for error in shelf.unreadable]
    for step in (lambda: cards.approvals(base), lambda: receipts.ledger(base), lambda: tags.registry(base)):
        try:
            step()
        except KhmsError as error:
            problems.append(of_error(error))
    try:
        for unit in inbox.units(base):
            problems += [of_error(error) for error in unit.broken]
    except KhmsError as error:
        problems.append(of_error(error))
    collected = sources.collect(base, receipts.Ledger(()), sources.window(None, None))
    problems += [of_finding(finding) for finding in collected.problems]
    yield from (_bad("files", problem) for problem in problems)
    if not problems:
        yield Result("files", OK, f"{len(shelf.cards)} cards and every other file can be read")


def _index(patient: Patient) -> Iterator[Result]:
    from khms.index import catchup, manifest, sync

    base = patient.base
    wrong = sync.verify(base)
    if wrong == "" or (base.index / manifest.NAME).exists() or patient.repair:
        if wrong and not patient.repair:
            yield Result("index", BAD, f"the index is damaged: {wrong}", str(base.index), "khms index --rebuild")
            return
        # Without the hour that a slow model may need: what is missing of its vectors is said.
        report = sync.refresh(base, rebuild=bool(wrong), config=patient.config, vectors=catchup.NEW)
        if wrong:
            yield Result("index", MENDED, f"built anew: {wrong}", str(base.index))
        for finding in report.skipped:
            place = f"{finding.path}:{finding.line}" if finding.line else finding.path
            yield Result("index", BAD, f"left out of the index: {finding.message}", place, finding.mend)
        yield Result("index", OK, f"{report.docs} documents")
        yield _model(patient)
    else:
        yield Result("index", NOTE, wrong, str(base.index), "the first khms recall builds it")


def _model(patient: Patient) -> Result:
    from khms.index import manifest
    from khms.measure.model import in_force

    model = in_force(patient.base, patient.config, manifest.load(patient.base.index))
    if not model.missing:
        return Result("model", OK, str(model))
    return Result("model", NOTE, f"{model}: {model.remark}", "", model.mend)


def _generated(patient: Patient) -> Iterator[Result]:
    from khms.pipeline import authority
    from khms.render import views

    base = patient.base
    wanted = views.wanted(base, cards.shelf(base).cards)
    for path in views.foreign(base, wanted):
        yield Result("generated", NOTE, "this file is not ours, so khms never writes it", path)
    changed = views.changed(base, wanted)
    if not changed:
        yield Result("generated", OK, f"{len(wanted)} generated files are up to date")
        return
    here = authority.on_receiving_branch(patient.repo, patient.config)
    for path, data in changed.items():
        if not patient.repair or not here:
            yield Result("generated", NOTE, "differs from what the cards say", path, "khms views writes it")
        elif data is None:
            files.unlink(base.path(path))
            yield Result("generated", MENDED, "removed: no card stands behind it any more", path)
        else:
            files.write_atomic(files.inside(base.root, base.path(path)), data)
            yield Result("generated", MENDED, "written anew; commit it", path)


def _local(patient: Patient) -> Iterator[Result]:
    """The base's own folder of this machine never gets into git."""
    from khms.store import local, siting

    base, repo = patient.base, patient.repo
    local.make(base)
    if siting.ignores(repo, f"{base.local}/"):
        yield Result("local", OK, f"{base.local} is ignored by git")
    elif patient.repair:
        files.write_atomic(base.local / ".gitignore", b"*\n")
        yield Result("local", MENDED, "git ignores it now", str(base.local))
    else:
        mend = "khms doctor --repair"
        yield Result("local", BAD, "git does not ignore this machine's own folder", str(base.local), mend)


def _trust(patient: Patient) -> Iterator[Result]:
    from khms.store import trust

    why = trust.why_not(Base(patient.base.root))
    if why:
        mend = f"if you know where it comes from: khms trust {patient.base.root}"
        yield Result("trust", NOTE, f"hooks leave this base out where it is found by walking up: {why}", "", mend)
    else:
        yield Result("trust", OK, "hooks may use this base")


def _hosts(patient: Patient) -> Iterator[Result]:
    from khms.hosts import registry, settings

    project = patient.repo.top
    installed = False
    for name in registry.HOSTS:
        host = registry.host(name)
        for scope in settings.scopes(host):
            held = settings.status(host, scope, project)
            yield from (Result("hooks", BAD, f"{name}: {problem}", str(held.path)) for problem in held.problems)
            if held.installed and not held.problems:
                yield Result("hooks", OK, f"{host.TITLE}, {scope}", str(held.path))
            installed = installed or held.installed
    if not installed:
        yield Result("hooks", NOTE, "no agent host is connected", "", f"khms hook install {next(iter(registry.HOSTS))}")


def _proposer(patient: Patient) -> Iterator[Result]:
    """Whether the agent that stands behind the proposals can be asked; the proposer `rules` is none."""
    from khms.hosts import headless

    name = patient.config["nightly.proposer"]
    if name in headless.AGENTS:
        asked = headless.agent(patient.config)
        yield Result("proposer", OK, f"{name}, {asked.model or 'the model of its own choice'}")
    else:
        yield Result("proposer", OK, f"{name}, which asks no agent")


def proposers() -> dict[str, dict[str, str]]:
    """What each proposer that asks an agent can enforce: its name -> what is enforced -> yes, no or a few words."""
    from khms.hosts import headless

    return {name: asdict(headless.enforces(name)) for name in headless.AGENTS}


CHECKS: dict[str, Check] = {
    "git": _git,
    "identity": _identity,
    "settings": _settings,
    "interrupted": _interrupted,
    "leftovers": _leftovers,
    "repository": _repository,
    "files": _readable,
    "index": _index,
    "generated": _generated,
    "local": _local,
    "trust": _trust,
    "hooks": _hosts,
    "proposer": _proposer,
}
