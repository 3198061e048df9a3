"""`khms signers`: whose signatures count, and whether one is required."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from khms.cli import shared
from khms.cli.output import one_line, print_json, table
from khms.cli.session import Session
from khms.errors import Usage

if TYPE_CHECKING:
    from khms.pipeline.sharing import Sharing
    from khms.pipeline.signers import Changed

_here = click.option("--here", is_flag=True, help="On this branch, though it is not the one that receives approvals.")
_json = click.option("--json", "as_json", is_flag=True, help="One JSON document.")


@click.group()
def signers() -> None:
    """Whose signatures of approvals count, and whether one is required.

    Signatures are those of SSH keys. Only where they are required, with keys that no agent can use, an audit tells who
    let a card in; without, it tells that the procedure was followed.

    \b
    ssh-keygen -t ed25519 -f ~/.ssh/khms
    git config --global user.signingkey ~/.ssh/khms
    khms signers add you@example.org ~/.ssh/khms.pub
    khms signers require on
    """


@signers.command("list")
@_json
@click.pass_obj
def list_signers(session: Session, as_json: bool) -> None:
    """Show the signers, and whether a signature is required.

    \b
    khms signers list
    khms signers list --json
    """
    from khms.store import files, signing
    from khms.store.layout import SIGNERS

    try:
        data = files.read(session.base.path(SIGNERS))
    except FileNotFoundError:
        data = b""
    held = signing.signers(data)
    odd = signing.unseen(data)
    if odd:
        session.note(f"memory/signers holds {odd}, which ssh reads as part of a name; {signing.UNSEEN}")
    required = bool(session.config["review.require_signed"])
    if as_json:
        rows = [
            {
                "principals": list(line.principals),
                "type": line.kind,
                "fingerprint": line.fingerprint,
                "options": line.options,
                "comment": line.comment,
            }
            for line in held
        ]
        print_json({"schema": "khms.signers/1", "required": required, "signers": rows})
        return
    if held:
        table(
            ("signer", "key", "fingerprint", "comment"),
            [(",".join(line.principals), line.kind, line.fingerprint, line.comment) for line in held],
        )
    else:
        session.say("there are no signers: khms signers add you@example.org ~/.ssh/khms.pub")
    session.say(f"a signature is {'required' if required else 'not required'} (khms signers require on|off)")


@signers.command()
@click.argument("email")
@click.argument("key", metavar="KEY.pub")
@_here
@_json
@click.pass_obj
def add(session: Session, email: str, key: str, here: bool, as_json: bool) -> None:
    """Let the signatures of the public key in KEY.pub count as those of EMAIL (`ci` for a job that signs).

    \b
    khms signers add ada@example.org ~/.ssh/khms.pub
    """
    from khms.pipeline import signers as change

    text = _key(session, key)
    remote = _shared(session)
    done = change.add(session.base, session.repo, session.config, email, text, here=here)
    shared.finish(session, remote, changed=bool(done.commit))
    _told(session, done, f"{email} has this key already", as_json)


def _key(session: Session, key: str) -> str:
    try:
        return (session.cwd / Path(key).expanduser()).read_text(encoding="utf-8")
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        hint = "name the public key's file, such as ~/.ssh/khms.pub"
        raise Usage("the key cannot be read", where=key, hint=hint) from error


@signers.command()
@click.argument("email")
@_here
@_json
@click.pass_obj
def remove(session: Session, email: str, here: bool, as_json: bool) -> None:
    """Let no key count as that of EMAIL any more. What it signed before stays valid.

    \b
    khms signers remove ada@example.org
    """
    from khms.pipeline import signers as change

    remote = _shared(session)
    done = change.remove(session.base, session.repo, session.config, email, here=here)
    shared.finish(session, remote, changed=bool(done.commit))
    _told(session, done, f"{email} is no signer", as_json)


@signers.command()
@click.argument("state", type=click.Choice(["on", "off"]))
@_here
@_json
@click.pass_obj
def require(session: Session, state: str, here: bool, as_json: bool) -> None:
    """Require a signature of every approval from now on, or no longer. The change itself is signed.

    \b
    khms signers require on
    """
    from khms.pipeline import signers as change

    remote = _shared(session)
    done = change.require(session.base, session.repo, session.config, state == "on", here=here)
    shared.finish(session, remote, changed=bool(done.commit))
    _told(session, done, f"it is {state} already", as_json)


def _shared(session: Session) -> "Sharing | None":
    """What others published, taken in for a person only."""
    from khms.pipeline.signers import demand_person

    demand_person()
    return shared.begin(session)


def _told(session: Session, done: "Changed", nothing: str, as_json: bool) -> None:
    if as_json:
        print_json(
            {"schema": "khms.signers-change/1", "commit": done.commit, "record": done.record, "signed": done.signed}
        )
        return
    if done.recovered:
        session.note(done.recovered)
    if done.commit is None:
        session.say(one_line(nothing))
        return
    sealed = "signed" if done.signed else "not signed: there was no signer before"
    session.say(f"commit {done.commit[:12]}, record memory/approvals/{done.record}.json ({sealed})")
