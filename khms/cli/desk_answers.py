"""The keys of a review, and the answers that take more than one: a relation, a waiver."""

from khms.cli.desk_keys import Key, Keys, Lines
from khms.errors import Usage
from khms.pipeline import reviewing
from khms.pipeline.reviewing import Act, View

APPROVE = Key("a", "approve", "[a]pprove")
APPROVE_AS_NEW = Key("a", "approve", "[a]pprove as new")
EDIT = Key("e", "edit", "[e]dit")
RELATION = Key("r", "relation", "[r]elation")
WAIVE = Key("w", "waive", "[w]aive")
DEFER = Key("d", "defer", "[d]efer")
DROP = Key("x", "drop", "[x]drop")
SKIP = Key("s", "skip", "[s]kip")
BACK = Key("b", "back", "[b]ack")
QUIT = Key("q", "quit", "[q]uit")
HELP = Key("?", "help", "[?]")
YES = Key("y", "yes", "[y]es")
SHOW = Key("v", "view", "")
KEEP = Key("", "go on", "Enter goes on")

UNDO = Key("u", "undo", "[u]ndo: put back what was there")
KINDS = (
    Key("n", "new", "[n]ew"),
    Key("s", "supports", "[s]upports"),
    Key("c", "contradicts", "[c]ontradicts"),
    Key("u", "supersedes", "s[u]persedes"),
    BACK,
)

HELP_TEXT = """\
a  approve: it comes in at the end, when you confirm
e  edit its file in your editor ($VISUAL, $EDITOR); then it is checked and shown again
r  relation: say how it stands to a card: new, supports, contradicts or supersedes it
w  waive a check that failed, with the reason; or accept that one was not run
d  defer: it moves to deferred/ and can be brought back
x  drop: refuse it, with the reason
s  skip: leave it pending
b  back to the one before
v  view it again, long lines whole
q  quit: what you decided is kept, khms review goes on there
Nothing happens to the base before you confirm it at the end."""


def relation(asked: Keys | Lines, rest: str, view: View) -> Act | None:
    """The relation that the reviewer settles: kind, card, because, as far as they were not said at once."""
    kind, _, rest = rest.replace(":", " ", 1).partition(" ")
    if not kind:
        answer = asked.choose(KINDS)
        kind, rest = answer.key, answer.rest
    kind = {key.key: key.word for key in KINDS}.get(kind, kind)
    if kind == "back":
        return None
    if kind == "new":
        return Act("relate", "new", rest)
    offered = [card.id for card in view.near]
    target, _, because = rest.strip().partition(" ")
    if not target:
        shown = ", ".join(f"{number} {card_id}" for number, card_id in enumerate(offered, 1))
        target, _, because = asked.line(f"{kind} which card? {shown or 'its id'}:").partition(" ")
    if target.isdigit() and 0 < int(target) <= len(offered):
        target = offered[int(target) - 1]
    needed = kind in reviewing.NEEDS_REASON
    if not because.strip() and (needed or asked.optional):
        because = asked.line("because:" if needed else "because (Enter: no reason):")
    return Act("relate", f"{kind}:{target}", because)


def waiver(asked: Keys | Lines, rest: str, view: View) -> Act:
    """What the reviewer lets pass: a check that failed, with the reason, or one that was not run."""
    offered = [*view.failed(), *(check for check in view.not_run() if check not in view.failed())]
    check, _, why = rest.partition(" ")
    if not check and not offered:
        raise Usage("no check failed that could be waived")
    if not check and len(offered) == 1:
        check = offered[0]
    elif not check:
        shown = ", ".join(f"{number} {name}" for number, name in enumerate(offered, 1))
        check, _, why = asked.line(f"which check? {shown}:").partition(" ")
    if check.isdigit() and 0 < int(check) <= len(offered):
        check = offered[int(check) - 1]
    if check in view.not_run() and check not in view.failed():
        return Act("accept", check)
    if check in view.failed() and not why.strip():
        why = asked.line(f"why may {check} pass all the same?")
    return Act("waive", check, why)
