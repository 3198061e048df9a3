"""A shell command taken apart into what it runs: each simple command by its words, however it is wrapped or quoted.

No shell is asked and nothing is expanded. What cannot be told before a run (`$TOOL -rf x`, an alias, base64) stays
unseen: this is for reminding somebody in time, not for stopping an attacker. One pass over the text, whatever it is;
no regular expressions, since a hook reads every command.
"""

from __future__ import annotations

from itertools import pairwise

from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DEEPEST = 5  # scripts inside scripts that are read
MOST_WORDS = 512  # of one simple command
MOST_COMMANDS = 2000
AHEAD = 12  # words after a wrapper among which the command that it runs begins
RUN = "<-"  # the word behind a command that says: it runs what comes in

SHELLS = frozenset(("ash", "bash", "dash", "fish", "ksh", "powershell", "pwsh", "sh", "zsh"))
# Programs that run the command in their own arguments, with the number of plain words before it.
WRAPPERS = {
    "bunx": 0, "busybox": 0, "caffeinate": 0, "chronic": 0, "command": 0, "doas": 0, "env": 0, "exec": 0, "ionice": 0,
    "nice": 0, "nohup": 0, "npx": 0, "parallel": 0, "runuser": 0, "setsid": 0, "stdbuf": 0, "strace": 0, "sudo": 0,
    "time": 0, "unbuffer": 0, "uvx": 0, "xargs": 0, "chroot": 1, "flock": 1, "timeout": 1,
}  # fmt: skip
# Programs that run a command somewhere else, or in an environment of theirs; where it begins among their words is
# theirs to know.
CARRIERS = frozenset((
    "bundle", "conda", "docker", "docker-compose", "hatch", "kubectl", "nerdctl", "npm", "oc", "pdm", "pipenv", "pnpm",
    "podman", "poetry", "uv", "yarn",
))  # fmt: skip
_CARRYING = frozenset(("exec", "run", "debug", "dlx"))
_JOINED = frozenset(("ssh", "su", "watch"))  # hand some last words of theirs to a shell, as one text
_SAYING = frozenset(("cat", "echo", "printf"))  # what they say is a script where a shell reads it
_NAMING = frozenset(("command", "echo", "printf", "type", "which"))  # their last word is a program's: $(which rm) -r x
_INTERPRETERS = ("node", "perl", "php", "python", "ruby")  # and those of a version, such as python3.12
_SOURCING = frozenset((".", "source"))
_RESERVED = frozenset(("!", "coproc", "do", "elif", "else", "if", "then", "until", "while", "{"))
_STARTS = {
    "find": ("-exec", "-execdir", "-ok", "-okdir"),
    "fd": ("-x", "-X", "--exec", "--exec-batch"),
    "fdfind": ("-x", "-X", "--exec", "--exec-batch"),
}
_PLAIN_END = frozenset(" \t\n\r\\'\"`$;&|()<>")
_QUOTED_END = frozenset('\\"`$')


@dataclass(frozen=True, slots=True)
class Simple:
    """One command: `words` begin with its program as it was written; `stdin` is what stands in its here-documents."""

    words: tuple[str, ...]
    stdin: str = ""

    @property
    def program(self) -> str:
        """The program's own name, without its folder."""
        name = self.words[0].replace("\\", "/").rpartition("/")[2] if self.words else ""
        return name.casefold().removesuffix(".exe")


Pipeline = tuple[Simple, ...]


def pipelines(command: str) -> list[Pipeline]:
    """Every pipeline in `command`, also those in substitutions, sub-shells, `bash -c`, `eval` and here-documents that a
    shell reads. Never raises."""
    found: list[Pipeline] = []
    scripts = [(command, 0)]
    seen = {command}
    while scripts and len(found) < MOST_COMMANDS:
        text, depth = scripts.pop(0)
        for pipeline in _Scan(text).pipelines():
            found.append(pipeline)
            if depth < DEEPEST:
                inner = [script for script in _scripts(pipeline) if script not in seen]
                seen.update(inner)
                scripts += [(script, depth + 1) for script in inner]
    return found[:MOST_COMMANDS]


def meant(simple: Simple) -> Iterator[Simple]:
    """The command itself, and those that it runs by its own words: `sudo -u ada rm x` is also `rm x`."""
    words = simple.words[:MOST_WORDS]
    open_, seen = [0], {0}
    while open_ and len(seen) < MOST_WORDS:
        start = open_.pop()
        here = Simple(words[start:], simple.stdin)
        yield here
        new = [at for at in _inner(words, start, here.program) if at not in seen]
        seen.update(new)
        open_ += new


def _inner(words: tuple[str, ...], start: int, program: str) -> Iterator[int]:
    """Where a command may begin within another's words."""
    ahead = range(start + 1, min(len(words), start + 1 + AHEAD))
    if program in WRAPPERS:
        passed, after_option = WRAPPERS[program], False
        for at in ahead:
            word = words[at]
            if word.startswith("-") and word != "-":
                after_option = True
            elif not assigns(word):
                yield at  # perhaps the value of the option before it: then it names no program
                if not after_option:
                    passed -= 1
                if passed < 0:
                    return
                after_option = False
    elif program in CARRIERS and any(words[at] in _CARRYING for at in ahead):
        yield from (at for at in ahead if not words[at].startswith("-"))
    elif program in _STARTS:
        yield from (at + 1 for at in range(start, len(words) - 1) if words[at] in _STARTS[program])


def assigns(word: str) -> bool:
    """Whether a word before a command sets a variable: NAME=value."""
    name, sign, _ = word.partition("=")
    return bool(sign) and name.isidentifier()


def runs_input(simple: Simple) -> bool:
    """Whether a command runs what comes in as a script: a shell or an interpreter that is given none by name or as a
    text. `python -m json.tool` only reads it."""
    program, arguments = simple.program, simple.words[1:]
    if arguments[:1] == ("/dev/stdin",):
        return _reads_scripts(program)
    if program in SHELLS:
        first = next((word for word in arguments if word[:1] not in "-<>" or word in ("-s", "--")), "-s")
        return first in ("-s", "--") and not any(_given(arguments))
    rest = [word for word in arguments if word not in ("-u", "-B", "-E", "-I", "-s")]
    return _interprets(program) and all(word == "-" or word[:1] in "<>" for word in rest)


def _interprets(program: str) -> bool:
    return program.rstrip("0123456789.") in _INTERPRETERS


def _reads_scripts(program: str) -> bool:
    return program in SHELLS | _SOURCING or _interprets(program)


def _runs_substituted(outer: Simple) -> bool:
    """Whether what is put in behind these words is run: `eval "$(…)"`, `sh -c "$(…)"`, `source <(…)`, but not what a
    script is given: `sh run.sh "$(…)"`."""
    script = _reads_scripts(outer.program) and all(word.startswith("-") for word in outer.words[1:])
    return script or outer.program == "eval"


def _scripts(pipeline: Pipeline) -> Iterator[str]:
    """The texts in a pipeline that a shell will read as commands."""
    fed = ""
    for simple in pipeline:
        for one in meant(simple):
            if one.program in SHELLS:
                yield from _given(one.words[1:])
                yield from (word[3:] for word in one.words if word.startswith("<<<"))
                script = [word for word in one.words[1:] if word[:1] not in ("-", "<", ">")]
                if not script and (one.stdin or fed):
                    yield one.stdin or fed
            elif one.program == "eval":
                yield " ".join(one.words[1:])
            elif one.program in _JOINED:
                yield from _given(one.words[1:])
                yield from (" ".join(one.words[at:]) for at in range(1, min(len(one.words), AHEAD // 2)))
        said = " ".join(simple.words[1:]) if simple.program in _SAYING else ""
        fed = "\n".join(filter(None, (said, simple.stdin, fed)))


def _given(words: tuple[str, ...]) -> Iterator[str]:
    """What follows the option of a shell that takes a script: `-c`, `-lc`, `-Command`."""
    for word, after in pairwise(words):
        option = word.casefold()
        if option == "-command" or (word.startswith("-") and not word.startswith("--") and "c" in option):
            yield after
            return


class _Frame:
    """What is open while a text is read: the script itself, a sub-shell or a substitution, each with the pipeline in
    the making. `documents` is filled by the line behind the command."""

    def __init__(self, closing: str, *, quoted: bool = False) -> None:
        self.closing = closing
        self.quoted = quoted  # it stands in double quotes, which go on behind it
        self.stages: list[_Stage] = []
        self.words: list[str] = []
        self.word: list[str] | None = None
        self.documents: list[str] = []


_Stage = tuple[list[str], list[str]]  # words, here-documents


class _Scan:
    """One pass over a script."""

    def __init__(self, text: str) -> None:
        self.text = text.replace("\\\r\n", " ").replace("\\\n", " ")
        self.at = 0
        self.open = [_Frame("")]
        self.quoted = False
        self.found: list[list[_Stage]] = []
        self.waiting: list[tuple[list[str], str, bool]] = []  # here-documents whose text begins on the next line

    @property
    def here(self) -> _Frame:
        return self.open[-1]

    def pipelines(self) -> list[Pipeline]:
        while self.at < len(self.text):
            if self.quoted:
                self._in_quotes()
            else:
                self._plain()
        while len(self.open) > 1:
            self._close()
        self._end()
        return [tuple(Simple(tuple(words), "".join(told)) for words, told in stages) for stages in self.found]

    def _add(self, piece: str) -> None:
        if self.here.word is None:
            self.here.word = []
        self.here.word.append(piece)

    def _run(self, ends: frozenset[str]) -> bool:
        """Takes the characters up to the next special one into the word; whether there were any."""
        start, text = self.at, self.text
        end, size = start, len(text)
        while end < size and text[end] not in ends:
            end += 1
        if end > start:
            self._add(text[start:end])
            self.at = end
        return end > start

    def _in_quotes(self) -> None:
        if self._run(_QUOTED_END):
            return
        char = self.text[self.at]
        if char == '"':
            self.quoted = False
            self.at += 1
        elif char == "\\":
            self._add(self.text[self.at + 1 : self.at + 2])
            self.at += 2
        else:
            self._substitution(char)

    def _substitution(self, char: str) -> None:
        """A `$` or a backtick: what it opens or closes, else a character like another."""
        if char == "`" and self._ticked():
            while self.here.closing != "`":
                self._close()
            self._close()
            self.at += 1
        elif char == "`" or self.text.startswith("$(", self.at):
            self._add("")
            self._open("`" if char == "`" else ")", 1 if char == "`" else 2)
        else:
            self._add(char)
            self.at += 1

    def _ticked(self) -> bool:
        return any(frame.closing == "`" for frame in self.open[-AHEAD:])

    def _open(self, closing: str, length: int) -> None:
        self.open.append(_Frame(closing, quoted=self.quoted))
        self.quoted = False
        self.at += length

    def _close(self) -> None:
        """Ends the innermost frame. What a shell gets by substitution is run by it: the two are one pipeline."""
        self._end_stage()
        frame = self.open.pop()
        self.quoted = frame.quoted
        if frame.stages:
            outer = Simple(tuple(self.here.words[:AHEAD]))
            if outer.words and any(_runs_substituted(one) for one in meant(outer)):
                self.found.append([*frame.stages, ([*outer.words, RUN], [])])
            else:
                self.found.append(frame.stages)
            said = Simple(tuple(frame.stages[-1][0]))
            if not (self.here.words or any(self.here.word or ())) and said.program in _NAMING:
                self._add(said.words[-1])

    def _plain(self) -> None:
        if self.text[self.at] == "#" and self.here.word is None:
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end
            return
        if self._run(_PLAIN_END):
            return
        char = self.text[self.at]
        if char in " \t\r":
            self._end_word()
            self.at += 1
        elif char == "'":
            end = self.text.find("'", self.at + 1)
            end = len(self.text) if end < 0 else end
            self._add(self.text[self.at + 1 : end])
            self.at = end + 1
        elif char == '"':
            self._add("")
            self.quoted = True
            self.at += 1
        elif char == "\\":
            self._add(self.text[self.at + 1 : self.at + 2])
            self.at += 2
        elif char in "$`":
            self._substitution(char)
        elif char in "<>":
            self._redirection(char)
        else:
            self._operator(char)

    def _operator(self, char: str) -> None:
        after = self.text[self.at + 1 : self.at + 2]
        self.at += 1
        if char == "(":
            self._end()
            self._open(")", 0)
        elif char == ")":
            if len(self.open) > 1 and self.here.closing == ")":
                self._close()
            else:
                self._end()
        elif char == "|" and after != "|":
            self._end_stage()
            self.at += after == "&"
        elif char == "&" and after == ">":
            self._end_word()
        else:
            self._end()
            self.at += char in "&|" and after == char
        if char == "\n":
            self._documents()

    def _redirection(self, char: str) -> None:
        """`<(…)` is a substitution, `<<` begins a here-document; else the target is a word that begins with the
        sign."""
        text, at = self.text, self.at
        if text.startswith("(", at + 1):
            self._end_word()
            self._open(")", 2)
        elif text.startswith("<<<", at):
            self._end_word()
            self.at = at + 3
            self._blanks()
            self._add("<<<")
        elif text.startswith("<<", at):
            self._end_word()
            self._here_document()
        else:
            if self.here.word and "".join(self.here.word).isdigit():  # 2>file
                self.here.word = None
            self._end_word()
            self.at += 1
            while text[self.at : self.at + 1] in (">", "|", "&") and self.at < len(text):
                self.at += 1
            self._blanks()
            self._add(char)

    def _blanks(self) -> None:
        while self.text[self.at : self.at + 1] in (" ", "\t") and self.at < len(self.text):
            self.at += 1

    def _here_document(self) -> None:
        self.at += 2
        tabs = self.text.startswith("-", self.at)
        self.at += tabs
        self._blanks()
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in " \t\r\n;&|<>()":
            self.at += 1
        mark = self.text[start : self.at].replace("'", "").replace('"', "").replace("\\", "")
        if mark:
            self.waiting.append((self.here.documents, mark, tabs))

    def _documents(self) -> None:
        """The texts of the here-documents that the line before announced."""
        for documents, mark, tabs in self.waiting:
            start = end = self.at
            while self.at < len(self.text):
                end, after = self.at, self.text.find("\n", self.at)
                line = self.text[end:] if after < 0 else self.text[end:after]
                self.at = len(self.text) if after < 0 else after + 1
                if (line.lstrip("\t") if tabs else line).rstrip("\r") == mark:
                    break
                end = self.at
            documents.append(self.text[start:end])
        self.waiting = []

    def _end_word(self) -> None:
        frame = self.here
        if frame.word is not None:
            word = "".join(frame.word)
            frame.word = None
            if frame.words or not (word in _RESERVED or assigns(word)):
                frame.words.append(word)

    def _end_stage(self) -> None:
        self._end_word()
        if words := self.here.words:
            first = next((at for at, word in enumerate(words) if word[:1] not in ("<", ">")), len(words))
            if first:  # `>file command` is `command >file`, and `>file` alone what `: >file` is
                words = [*(words[first:] or [":"]), *words[:first]]
            self.here.stages.append((words[:MOST_WORDS], self.here.documents))
        self.here.words, self.here.documents = [], []

    def _end(self) -> None:
        self._end_stage()
        if self.here.stages:
            self.found.append(self.here.stages)
        self.here.stages = []


def text_of(pipeline: Iterable[Simple]) -> str:
    """All that a pipeline's commands are given: their arguments and here-documents."""
    return "\n".join(" ".join((*simple.words[1:], simple.stdin)) for simple in pipeline)
