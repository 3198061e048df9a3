"""Which classes of risky commands a command belongs to. The classes are data (`precheck.classes`); this is how their
patterns are read.

    rm -r|-R|--recursive          a program, then what must stand among its arguments; `|` between alternatives
    git push -f|--force|+*        words of subcommands in their order; options, and words with `*`, anywhere
    psql|mysql ~drop table        after `~` words that stand in a row in the arguments or in what is fed to it
    curl|wget | sh|bash           stages of one pipeline, others may stand between them
    curl | * <-                   any program that runs what comes in: a shell or an interpreter, given no script
    find|xargs & rm               a program that runs another one
    * | =                         a command into the very same once more
    * >/dev/sd*                   any program, and where its output goes
    git clean -f !-n              `!` before what must not stand there

A single letter such as `-f` is also found in `-rf`; all else is compared without regard to case. A command that is only
asked for its help, or what it would do, belongs to no class.
"""

from __future__ import annotations

from khms.model.commandline import RUN, Pipeline, Simple, meant, pipelines, runs_input, text_of
from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


SAME = [["="]]  # a stage of a pattern


@dataclass(frozen=True, slots=True)
class Risk:
    """A class of commands, and the tags of what is known about them."""

    name: str
    patterns: tuple[str, ...]
    tags: tuple[str, ...]


def risks_from(table: Mapping[str, object]) -> list[Risk]:
    """The classes of a configuration's table; raises ValueError naming what is not of the form."""
    found = []
    for name, about in table.items():
        if not isinstance(about, dict) or not set(about) <= {"patterns", "tags"}:
            raise ValueError(f"{name} must be a table with patterns and tags")
        lists = [about.get(key, []) for key in ("patterns", "tags")]
        if not all(isinstance(items, list) and all(isinstance(item, str) for item in items) for items in lists):
            raise ValueError(f"patterns and tags of {name} must be lists of texts")
        found.append(Risk(name, *map(tuple, lists)))
    return found


def classify(command: str, risks: Iterable[Risk]) -> list[Risk]:
    """Those of `risks` that `command` belongs to, in their order."""
    lines = [_Line(pipeline) for pipeline in pipelines(command)]
    programs = {one.program for line in lines for stage in line.stages for one in stage}
    return [risk for risk in risks if any(_fits(pattern, lines, programs) for pattern in risk.patterns)]


class _Line:
    """A pipeline as patterns look at it: each stage with the commands that it means."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.stages = [[_marked(one) for one in meant(simple) if not _only_asks(one)] for simple in pipeline]
        self._pipeline = pipeline
        self._words = ""

    @property
    def words(self) -> str:
        """All that is given to the commands, as folded words between single blanks."""
        if not self._words:
            text = text_of(self._pipeline).casefold()
            self._words = f" {' '.join(''.join([c if c.isalnum() or c == '_' else ' ' for c in text]).split())} "
        return self._words


def _marked(command: Simple) -> Simple:
    return Simple((*command.words, RUN), command.stdin) if runs_input(command) else command


# With these a program says what it would do, or what it can do. (`-n` and `-h` mean something else to most.)
_ASKING = frozenset((
    "--help", "-help", "--dry-run", "--dry-run=client", "--dry-run=server", "--dry-run=true", "--dryrun", "-whatif",
))  # fmt: skip


def _only_asks(command: Simple) -> bool:
    options = command.words[1:]
    if "--" in options:
        options = options[: options.index("--")]
    return options[-1:] == ("-h",) or any(word.casefold() in _ASKING for word in options)


def _fits(pattern: str, lines: Sequence[_Line], programs: set[str]) -> bool:
    if not _any_program(pattern.partition(" ")[0], programs):  # so it is for nearly every pattern
        return False
    rules, _, said = pattern.partition(" ~")
    parts = [[rule.split() for rule in part.split(" & ") if rule.strip()] for part in rules.split(" | ")]
    stages = [stage for stage in parts if stage]
    return any(_line_fits(stages, said, line) for line in lines)


def _line_fits(stages: Sequence[Sequence[Sequence[str]]], said: str, line: _Line) -> bool:
    wanted = list(stages)
    for at, stage in enumerate(line.stages):
        if not wanted:
            break
        if wanted[0] == SAME:
            fits = at > 0 and bool(stage) and stage == line.stages[at - 1]
        else:
            fits = all(any(_command_fits(rule, one) for one in stage) for rule in wanted[0])
        if fits:
            wanted.pop(0)
    if wanted or not said:
        return not wanted
    return any(f" {' '.join(text.casefold().split())} " in line.words for text in said.split("|"))


def _command_fits(rule: Sequence[str], command: Simple) -> bool:
    program, *wanted = rule
    if not _any_program(program, {command.program}):
        return False
    arguments = command.words[1:]
    subcommands = [word for word in wanted if not _anywhere(word)]
    for word in wanted:
        if _anywhere(word) and any(_meets(word.lstrip("!"), given) for given in arguments) is word.startswith("!"):
            return False
    return not subcommands or _in_order(subcommands, arguments)


def _in_order(wanted: Sequence[str], arguments: Sequence[str]) -> bool:
    """Whether the subcommands stand where a program looks for them: first of all, options and their values aside. A
    word after an option may be its value or not, so both is tried."""
    at = 0
    for word in wanted:
        after_option = False
        while True:
            if at == len(arguments):
                return False
            given = arguments[at]
            at += 1
            if given.startswith("-") and not _meets(word, given):
                after_option = True
            elif _meets(word, given):
                break
            elif not after_option:
                return False
            else:
                after_option = False
    return True


def _anywhere(word: str) -> bool:
    return word[0] in "-<>!" or "*" in word


def _any_program(alternatives: str, programs: set[str]) -> bool:
    names = alternatives.casefold().split("|")
    if not programs.isdisjoint(names):
        return True
    return "*" in alternatives and any(_glob(name, program) for name in names for program in programs)


def _meets(alternatives: str, given: str) -> bool:
    return any(_one_meets(word, given) for word in alternatives.split("|"))


def _one_meets(word: str, given: str) -> bool:
    if len(word) == 2 and word[0] == "-" != word[1]:  # a letter, perhaps with others
        return given[:1] == "-" and given[:2] != "--" and word[1] in given[1:].partition("=")[0]
    if word[0] == "-":
        given = given.partition("=")[0] if "=" not in word else given
    return _glob(word.casefold(), given.casefold())


def _glob(word: str, given: str) -> bool:
    """`*` stands for any characters, at the end of a word; elsewhere it is a character like another."""
    return given.startswith(word[:-1]) if word.endswith("*") else given == word


def words_of(command: str) -> Iterator[str]:
    """Programs and plain arguments of a command, for telling which of the cards about its class is nearest."""
    for pipeline in pipelines(command):
        for simple in pipeline:
            yield simple.program
            yield from (word for word in simple.words[1:] if not word.startswith("-"))
