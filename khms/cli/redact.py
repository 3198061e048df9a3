"""`khms redact`: words leave a card for good, and a person who leaked something is told what else to do."""

import sys
from collections.abc import Iterator

import click

from khms.cli import shared
from khms.cli.approval import agree_on_branch
from khms.cli.output import one_line, print_json
from khms.cli.session import Session
from khms.errors import Usage
from khms.pipeline.redact import Redacted
from khms.pipeline.traces import Trace


@click.command()
@click.argument("card_id", metavar="ID")
@click.option("--match", "matches", multiple=True, metavar="TEXT|-", help="These words; - reads them from a pipe.")
@click.option("--line", "lines", multiple=True, type=int, metavar="N", help="What is said on this line of the file.")
@click.option("--why", required=True, help="The reason, without the words; kept in the record.")
@click.option("--everywhere", is_flag=True, help="Take the words out of every other file of the base too.")
@click.option("--here", is_flag=True, help="On this branch, though it is not the one that receives approvals.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def redact(
    session: Session,
    card_id: str,
    matches: tuple[str, ...],
    lines: tuple[int, ...],
    why: str,
    everywhere: bool,
    here: bool,
    as_json: bool,
) -> None:
    """Replace words of a card by [redacted]: its text, title, source and other texts. Recorded like an approval.

    Without --match and --line the words are asked for, or read from a pipe: a key on the command line would stay in
    your shell's history. Other files that hold the words are listed; --everywhere changes them in the same commit.
    What git holds of the past stays there: the steps to take it out are printed.

    \b
    khms redact K-00042 --why "a customer's name stood there"
    khms redact K-00042 --line 17 --why "an internal address"
    pass show old-key | khms redact K-00042 --match - --everywhere --why "a key"
    """
    from khms.pipeline.redact import redact as take_out
    from khms.render import views

    words = _words(matches, lines)
    agreed = here or agree_on_branch(session, here)
    remote = shared.begin(session, [card_id])
    done = take_out(
        session.base,
        session.repo,
        session.config,
        card_id,
        why,
        words=words,
        lines=lines,
        everywhere=everywhere,
        here=agreed,
        views=views.for_base,
    )
    shared.finish(session, remote, changed=True)
    _forget(session)
    if as_json:
        print_json(_json(done))
        return
    if done.recovered:
        session.note(done.recovered)
    for line in _report(done, everywhere):
        session.say(line)
    session.say()
    for line in _steps(session.repo.has_remote(), session.repo.prefix):
        session.say(line)


def _words(matches: tuple[str, ...], lines: tuple[int, ...]) -> tuple[str, ...]:
    """The words as they were given, from a pipe, or from a prompt that shows nothing."""
    if not matches and not lines:
        if sys.stdin.isatty():
            said = click.prompt("Words to take out (not shown)", hide_input=True, err=True)
            return (str(said),)
        matches = ("-",)
    if matches.count("-") > 1:
        raise Usage("--match - reads the whole pipe, so it can be given once", hint="run the command again")
    return tuple(_piped() if match == "-" else match for match in matches)


def _piped() -> str:
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig").replace("\r\n", "\n").strip("\n")
    except UnicodeDecodeError as error:
        raise Usage("what came through the pipe is not UTF-8", hint="send the words as UTF-8") from error
    if not text.strip():
        raise Usage("nothing came through the pipe", hint="--match TEXT, --line N, or run it at a terminal to be asked")
    return text


def _forget(session: Session) -> None:
    """Builds the index anew: what was in it of the words must not linger in its files, nor in those of the past."""
    from khms.errors import KhmsError
    from khms.index import manifest, past, sync
    from khms.index.catchup import NEW
    from khms.store import files

    try:
        files.remove_tree(session.base.local / past.FOLDER)  # older commits as files, for recall --at
    except (KhmsError, OSError) as error:
        session.note(f"the words may still stand in {session.base.local / past.FOLDER}: {error}")
    if not (session.base.index / manifest.NAME).exists():
        return
    try:
        sync.refresh(session.base, rebuild=True, config=session.config, vectors=NEW)
    except KhmsError as error:
        session.note(f"the index still holds the words: {error.message} (khms index --rebuild)")


def _report(done: Redacted, everywhere: bool) -> Iterator[str]:
    for path in done.cards:
        yield one_line(f"{path}: redacted")
    yield f"commit {done.commit[:12]}" + (f", record memory/approvals/{done.record}.json" if done.record else "")
    for finding in done.still:
        yield one_line(f"- still there: {finding.path}:{finding.line} {finding.message}")
    others = [trace for trace in done.elsewhere if trace.path not in done.cards]
    if not others:
        yield "no other file of the base holds these words"
        return
    yield "other files with these words:"
    for trace in others:
        yield f"  {_place(trace)}{_state(trace, trace.path in done.changed)}"
    if not everywhere and any(trace.after is not None for trace in others):
        yield f"khms redact {done.id} --everywhere takes them out there too: give it the same words once more"


def _place(trace: Trace) -> str:
    more = f" and {len(trace.lines) - 5} more" if len(trace.lines) > 5 else ""
    return one_line(f"{trace.path}:{','.join(map(str, trace.lines[:5]))}{more}")


def _state(trace: Trace, changed: bool) -> str:
    if changed:
        return "  taken out"
    return f"  ({trace.kept})" if trace.kept else ""


def _steps(remote: bool, prefix: str) -> Iterator[str]:
    """What a person who leaked a secret has to do beside this commit, as it is."""
    yield "If it was a secret:"
    yield "1. Renew it now, where it was issued. This commit hides it from readers; whoever has a clone has it still."
    yield "2. To take it out of git's history as well (git-filter-repo; it gives every later commit another id):"
    yield "   - --everywhere first: what the rewriting would change in today's files has to be recorded"
    yield "   - have everybody push what they have, and stop"
    yield "   - git clone --mirror URL rewrite && cd rewrite"
    yield "   - write words.txt beside it, in an editor; for each line of the secret:  literal:THE WORDS==>[redacted]"
    yield "   - git filter-repo --replace-text ../words.txt --replace-message ../words.txt"
    if remote:
        yield (
            "   - git push --force --mirror URL   (protected branches must allow it for that moment; the host refuses "
            "its own refs of pull requests)"
        )
        yield "   - ask the host to drop its caches and those refs: a force-push does not reach them"
    yield "   - every clone and fork anew; one that is pulled into brings the old history back. Remove words.txt"
    if prefix:
        yield f"   It is the whole repository's history that changes, not {prefix} alone."
    yield "3. khms doctor --secrets looks through the history that is left; khms audit must have nothing to say."


def _json(done: Redacted) -> dict[str, object]:
    return {
        "schema": "khms.redact/1",
        "id": done.id,
        "commit": done.commit,
        "record": done.record,
        "cards": list(done.cards),
        "transitions": [
            {"id": t.id, "field": t.field, "old": t.old, "new": t.new, "why": t.why} for t in done.transitions
        ],
        "elsewhere": [
            {"path": t.path, "lines": list(t.lines), "changed": t.path in done.changed, "kept": t.kept}
            for t in done.elsewhere
        ],
        "still": [finding.as_json() for finding in done.still],
    }
