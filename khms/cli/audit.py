"""`khms audit`: whether everything in the base came in through the review."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING

import click

from khms.cli import shared
from khms.cli.output import console, fold, one_line, print_json
from khms.cli.session import Session
from khms.errors import Usage

if TYPE_CHECKING:
    from khms.check.audit import Report
    from khms.check.auditing import Trouble

GUARANTEES = {
    "procedure": (
        "signatures are not required here: this says that the procedure was followed, not who followed it "
        "(khms signers require on)"
    ),
    "boundary": "signatures are required here: this says who let each card in since then",
}


@click.command()
@click.option("--range", "span", metavar="A..B", help="Only what B has over A: for a pull request.")
@click.option("--staged", is_flag=True, help="Only what is staged, against HEAD: for a pre-commit hook.")
@click.option("--receive", is_flag=True, help="Only what is pushed, read from standard input: for a pre-receive hook.")
@click.option("--adopt", is_flag=True, help="Admit the cards that are older than khms, by one record.")
@click.option("--here", is_flag=True, help="With --adopt: on this branch, though it does not receive approvals.")
@click.option("--annotate", type=click.Choice(["github", "gitlab"]), help="Findings as annotations of this service.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def audit(
    ctx: click.Context,
    span: str | None,
    staged: bool,
    receive: bool,
    adopt: bool,
    here: bool,
    annotate: str | None,
    as_json: bool,
) -> None:
    """Check that every card is what a reviewer let in: its record, its history, its signature. Exit 1 on findings.

    Without options: all of HEAD, and what the work tree holds otherwise.

    \b
    khms audit
    khms audit --range origin/main..HEAD
    khms audit --staged
    khms audit --adopt            once, in a base that is older than khms
    khms audit --receive          in hooks/pre-receive of a server's repository
    """
    session: Session = ctx.obj
    if sum(map(bool, (span, staged, receive, adopt))) > 1:
        raise Usage("--range, --staged, --receive and --adopt exclude each other", hint="say one of them")
    if adopt:
        _adopt(session, here, as_json)
        return
    report, prefix = _report(session, span, staged, receive, as_json)
    if as_json:
        _print_json(report)
    elif annotate:
        from khms.cli.annotate import print_annotations

        print_annotations([one.finding for one in report.troubles], annotate, prefix)
    else:
        _show(session, report)
    if report.troubles:
        ctx.exit(1)


def _report(session: Session, span: str | None, staged: bool, receive: bool, as_json: bool) -> tuple["Report", str]:
    """The report, and what stands before its paths in the repository."""
    from khms.check import audit as check
    from khms.check import audit_change

    if receive:
        from khms.check.receive import received, updates
        from khms.store.repo import receiving

        return received(receiving(session.cwd), updates(sys.stdin.read())), ""
    named = os.environ.get("GIT_INDEX_FILE", "")  # before the first git call, which drops it
    index = str(session.cwd / named) if named else ""
    repo = session.repo
    if staged:
        return audit_change.staged(session.base, repo, index), repo.prefix
    if span is not None:
        from khms.store import history

        a, b = _ends(span)
        return audit_change.between(repo, repo.prefix, *history.resolved(repo, a, b)), repo.prefix
    with _progress(session, as_json) as progress:
        return check.whole(session.base, repo, progress=progress), repo.prefix


def _ends(span: str) -> tuple[str, str]:
    a, found, b = span.partition("...") if "..." in span else span.partition("..")
    if not found or not a:
        raise Usage(f"{span!r} is no range", hint="--range A..B, such as --range origin/main..HEAD")
    return a, b or "HEAD"


@contextmanager
def _progress(session: Session, as_json: bool) -> Iterator[Callable[[str], None]]:
    """What is being done, on a terminal's standard error."""
    if as_json or session.quiet or not sys.stderr.isatty():
        yield lambda what: None
        return
    with console(error=True).status("audit") as status:
        yield lambda what: status.update(f"audit: {what}")


def _print_json(report: "Report") -> None:
    print_json(
        {
            "schema": "khms.audit/1",
            "cards": report.cards,
            "records": report.records,
            "signed": report.signed,
            "guarantee": report.guarantee,
            "uncommitted": list(report.uncommitted),
            "findings": [one.as_json() for one in report.troubles],
        }
    )


def _show(session: Session, report: "Report") -> None:
    for path, held in groupby(report.troubles, key=lambda one: one.finding.path):
        print(one_line(path))
        for one in held:
            _line(session, one)
        print()
    if report.uncommitted:
        session.say(f"with {_count(len(report.uncommitted), 'file')} as the work tree has it, not committed yet")
    counts = f"{_count(report.cards, 'card')}, {_count(report.records, 'record')}, {report.signed} signed"
    session.say(f"{counts}: {_verdict(report.troubles)}")
    session.say(fold(GUARANTEES[report.guarantee]))


def _line(session: Session, one: "Trouble") -> None:
    finding = one.finding
    place = f"{finding.line:>4}" if finding.line else "   -"
    told = fold(f"  {place}  {finding.code}  {one_line(finding.message)}", 15)
    if session.colour:
        told = told.replace(finding.code, click.style(finding.code, fg="red"), 1)
    print(told)
    print(fold(f"{'':15}{one_line(finding.mend)}", 15))


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _verdict(troubles: Sequence["Trouble"]) -> str:
    return _count(len(troubles), "finding") if troubles else "all came in through the review"


def _adopt(session: Session, here: bool, as_json: bool) -> None:
    from khms.pipeline.adopt import adopt

    remote = shared.begin(session)
    done = adopt(session.base, session.repo, session.config, here=here)
    shared.finish(session, remote, changed=bool(done.commit))
    if as_json:
        print_json({"schema": "khms.adopt/1", "commit": done.commit, "record": done.record, "cards": list(done.cards)})
        return
    if done.recovered:
        session.note(done.recovered)
    if done.commit is None:
        session.say("nothing to admit: every card has a record")
        return
    admitted = _count(len(done.cards), "card")
    session.say(f"{admitted} older than khms admitted, {done.cards[0]} to {done.cards[-1]}")
    session.say(f"commit {done.commit[:12]}, record memory/approvals/{done.record}.json")
