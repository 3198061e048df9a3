"""`khms lint`: what is wrong with the base's files."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from khms.cli import annotate as annotations
from khms.cli.output import fold, one_line, print_json
from khms.cli.progress import progress
from khms.cli.session import Session
from khms.config import Config
from khms.errors import KhmsError, Refused, Usage
from khms.model.card import Card
from khms.model.finding import Finding

if TYPE_CHECKING:
    from khms.check.lint import Report
    from khms.store.repo import Repo

MANY = 5  # files with one and the same warning; from the next on it is shown once for all


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]…")
@click.option("--staged", is_flag=True, help="Check what is staged, as it is staged: for a pre-commit hook.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@annotations.option
@click.pass_context
def lint(ctx: click.Context, paths: tuple[str, ...], staged: bool, as_json: bool, annotate: str | None) -> None:
    """Check the base's files, or those at or below PATH. Exit 1 where an error stands; warnings alone exit 0.

    \b
    khms lint
    khms lint memory/know/K-00042.md
    khms lint --staged
    """
    from khms.check.lint import lint as check

    session: Session = ctx.obj
    if annotate and as_json:
        raise Usage("--annotate and --json both say what to print", hint="take one of them")
    named = os.environ.get("GIT_INDEX_FILE", "")  # before the first git call, which drops it
    index = str(session.cwd / named) if named else ""
    chosen = [_inside(session, path) for path in paths] or None
    repo = session.repo if staged else _repo(session)
    config = _config(session)
    with progress("lint", quiet=session.quiet or as_json or annotate is not None) as told:
        report = check(
            session.base,
            config,
            repo,
            paths=chosen,
            staged=staged,
            index=index,
            generated=None if staged or chosen else _generated(session, repo, config),
            progress=told,
        )
        if staged and _receives(repo, config):
            report = replace(report, findings=(*report.findings, *_altered(repo, index, chosen)))
    if annotate:
        annotations.print_annotations(report.findings, annotate, repo.prefix if repo else "")
    elif as_json:
        findings = [finding.as_json() for finding in report.findings]
        print_json({"schema": "khms.lint/1", "checked": report.checked, "findings": findings})
    else:
        _show(session, report)
    if report.errors:
        ctx.exit(1)


def _inside(session: Session, path: str) -> str:
    """The base path of an argument, which is taken from the current folder, else from the base. A link stands for
    itself; raises Refused for a path that is not there or not in the base."""
    root = session.base.root.resolve()
    for start in (session.cwd, session.base.root):
        file = Path(os.path.normpath(start / path))
        if not os.path.lexists(file):
            continue
        place = file.parent.resolve() / file.name if file != root else root
        if place == root or root in place.parents:
            return place.relative_to(root).as_posix()
        raise Refused("this path lies outside the base", where=path, hint=f"the base is {root}")
    raise Refused("there is no such file", where=path, hint=f"paths count from here, or from {root}")


def _repo(session: Session) -> "Repo | None":
    """The repository; None for a base that is in none, whose files are all looked at."""
    from khms.errors import Unavailable

    try:
        return session.repo
    except Unavailable:
        session.need_git()
        return None


def _config(session: Session) -> Config:
    """The settings; the defaults where the base's file cannot be read, which lint itself reports."""
    try:
        return session.config
    except Refused:
        return Config([])


def _generated(
    session: Session, repo: "Repo | None", config: Config
) -> Callable[[Mapping[str, Card]], Mapping[str, bytes | None]] | None:
    """What says which generated files differ: on the branch that receives approvals only, elsewhere they lag behind."""
    from khms.render import views

    if not _receives(repo, config):
        return None

    def differing(cards: Mapping[str, Card]) -> Mapping[str, bytes | None]:
        try:
            return views.changed(session.base, views.wanted(session.base, cards))
        except KhmsError:  # an unreadable tag registry, which lint itself reports
            return {}

    return differing


def _receives(repo: "Repo | None", config: Config) -> bool:
    """Whether this is the branch that receives approvals, as far as can be told."""
    from khms.pipeline import authority

    try:
        return repo is not None and bool(repo.branch()) and authority.on_receiving_branch(repo, config)
    except KhmsError:
        return False


def _altered(repo: "Repo | None", index: str, chosen: Sequence[str] | None) -> Iterator[Finding]:
    """KH016 of what is staged, as an error: every session reads these files, and nobody reviews what is put in."""
    from khms.render.staged import altered

    assert repo is not None
    try:
        paths = altered(repo, index)
    except KhmsError:  # an unreadable tag registry, which lint itself reports
        return
    for path in paths:
        if chosen is None or any(path == folder or path.startswith(f"{folder}/") for folder in chosen):
            message = "this generated file is not what khms would write from the staged cards"
            mend = f"khms views writes it anew; then: git add {path}"
            yield Finding("KH016", "error", path, 1, message, mend)


def _show(session: Session, report: "Report") -> None:
    """The findings by file, what many files share once, and the count."""
    shared = _shared(report.findings)
    by_file: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in report.findings:
        if _same(finding) not in shared:
            by_file[finding.path].append(finding)
    for path, findings in by_file.items():
        print(one_line(path))
        for finding in findings:
            _line(session, finding, str(finding.line) if finding.line else "-", finding.mend)
        print()
    for findings in shared.values():
        paths = [finding.path for finding in findings]
        print(one_line(f"{len(paths)} files: {', '.join(paths[:3])}, … (--json lists them)"))
        _line(session, findings[0], "-", findings[0].mend)
        print()
    files = f"{report.checked} file{'' if report.checked == 1 else 's'}"
    counts = [
        f"{number} {word}{'' if number == 1 else 's'}"
        for number, word in ((report.errors, "error"), (report.warnings, "warning"))
        if number
    ]
    session.say(f"{files} checked: {', '.join(counts) or 'nothing wrong'}")


def _same(finding: Finding) -> tuple[str, str, str]:
    return finding.code, finding.message, finding.mend


def _shared(findings: Sequence[Finding]) -> dict[tuple[str, str, str], list[Finding]]:
    """The warnings that more than MANY files have alike."""
    groups: defaultdict[tuple[str, str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.severity == "warning":
            groups[_same(finding)].append(finding)
    return {key: held for key, held in groups.items() if len(held) > MANY}


def _line(session: Session, finding: Finding, line: str, mend: str) -> None:
    word = f"{finding.severity:<7}"
    told = fold(f"  {line:>4}  {word} {finding.code}  {one_line(finding.message)}", 24)
    if session.colour:
        told = told.replace(word, click.style(word, fg="red" if finding.severity == "error" else "yellow"), 1)
    print(told)
    if mend:
        print(fold(f"{'':24}{one_line(mend)}", 24))
