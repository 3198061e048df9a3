"""What is asked: the person's own sentence, a shell command, or what an edit is about.

Hosts put more into a prompt than the person typed: reminders, notifications, the output of commands, what khms itself
said before. Pasted logs and code are cut too, since the sentence around them is the question. No regular expressions:
a prompt of a megabyte is read in a few passes.
"""

from pathlib import PurePath

from khms.model.frame import FRAME_HEAD
from khms.model.frame import FRAME_TAIL as CLOSING

OPENING = FRAME_HEAD.partition(" ")[0]
# Blocks that hosts write, by their tag. What stands in them was typed by nobody.
CHROME = (
    "system-reminder", "task-notification", "command-name", "command-message", "command-args", "command-contents",
    "user-prompt-submit-hook", "local-command-stdout", "local-command-stderr", "local-command-caveat", "bash-input",
    "bash-stdout", "bash-stderr", "tool_result", "environment_context", "user_instructions", "ide_opened_file",
    "ide_selection", "ide_diagnostics", "new-diagnostics", "persisted-output", "function_results", "attached_files",
)  # fmt: skip
PASTED = 8  # so many lines of a machine's in a row are a paste
TELLING = 2  # lines of a paste that are kept: the first that speak of an error
MOST = 4  # sentences of a prompt, or commands of a line, that are asked about
LONG = 400  # characters from which a line with hardly a blank in it is a machine's
_ERRORS = ("error", "exception", "fatal", "failed", "panic", "denied", "refused", "not found")
# Commands that look at files or move them about: they say nothing of what is worked on.
EVERYDAY = frozenset((
    "awk", "basename", "bat", "cat", "cd", "clear", "cp", "cut", "date", "df", "diff", "dirname", "du",
    "echo", "exit", "export", "fd", "file", "find", "grep", "head", "history", "jobs", "less", "ln", "ls",
    "man", "mkdir", "more", "nl", "open", "popd", "printf", "ps", "pushd", "pwd", "read", "realpath", "rg",
    "rmdir", "sed", "set", "sleep", "sort", "stat", "tail", "tee", "test", "touch", "tr", "tree", "true",
    "type", "uniq", "unset", "wc", "which",
))  # fmt: skip
_LOOKING = frozenset(("add", "blame", "branch", "diff", "log", "show", "status"))  # of git
_SHORT = ("e.g.", "i.e.", "vs.", "cf.", "ca.", "no.", "approx.")  # end no sentence
_BEFORE = frozenset(("command", "exec", "nice", "nohup", "sudo", "time", "xargs"))  # stand before what is meant


def from_prompt(prompt: str, limit: int) -> tuple[str, ...]:
    """The person's own words in `prompt`, at most `limit` characters of them, each sentence a question of its own; none
    where there are no such words."""
    own = _shorten(_without_pastes(_without_chrome(_without_own(prompt))), limit)
    return _sentences(own) if own else ()


def from_command(command: str, limit: int) -> tuple[str, ...]:
    """What a shell command is about, each simple command of it by itself, the first few; nothing where they only handle
    files. A here-document's text is left out."""
    line = command.split("<<", 1)[0][: limit * MOST]
    for mark in ("&&", "||", ";", "|", "\n"):
        line = line.replace(mark, "\0")
    meant = [" ".join(words) for part in line.split("\0") if (words := _meant(part.split()))]
    return tuple(_shorten(text, limit) for text in dict.fromkeys(meant))[:MOST]


def from_edit(path: str, cwd: str, text: str, limit: int) -> tuple[str, ...]:
    """The file by its path in the project, and the text that is put in: two questions."""
    shown = PurePath(path)
    if cwd and shown.is_relative_to(cwd):
        shown = shown.relative_to(cwd)
    asked = (str(shown) if path else "", text)
    return tuple(short for part in asked if (short := _shorten(part, limit)))


def from_failure(error: str, limit: int) -> tuple[str, ...]:
    """What a failed command said: the first lines that speak of an error, else its last line. A host's own word on the
    exit code is none."""
    lines = [line.strip() for line in error[: limit * MOST].splitlines() if line.strip()]
    own = [line for line in lines if not line.lower().startswith("exit code")]
    telling = [line for line in own if any(word in line.lower() for word in _ERRORS)] or own[-1:]
    return tuple(short for line in dict.fromkeys(telling) if (short := _shorten(line, limit)))[:TELLING]


def _sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text that are asked about, in its order: before all those that end in a question mark, then
    those of most words that tell something. What somebody adds around a question (of 200 prompts, each with a sentence
    before and after it) otherwise hides it: 16 % got their card by words, with this 69 %, nearly as many as without
    the additions."""
    found = list(dict.fromkeys(sentence for line in text.splitlines() for sentence in _parts(line)))
    if len(found) < 2:
        return (text,)
    from khms.index.text import STOP_WORDS, terms

    telling = {one: len(set(terms(one).words) - STOP_WORDS) for one in found}
    some = [one for one in found if telling[one] > 1] or [text]
    best = sorted(some, key=lambda one: (one[-1] not in "?？", -telling.get(one, 0)))[:MOST]
    return tuple(one for one in some if one in best)


def _parts(line: str) -> list[str]:
    """A line's sentences. A full stop ends one where a blank follows; in scripts without blanks, always."""
    for end in "。？！":
        line = line.replace(end, end + " ")
    parts: list[list[str]] = [[]]
    for word in line.split():
        parts[-1].append(word)
        if word[-1] in ".?!;:。？！" and word.lower() not in _SHORT:
            parts.append([])
    return [" ".join(part) for part in parts if part]


def _meant(words: list[str]) -> list[str]:
    """The words of one simple command, nothing where it is an everyday one. Settings of variables before it go."""
    while words and (words[0] in _BEFORE or ("=" in words[0] and words[0].partition("=")[0].isidentifier())):
        words = words[1:]
    if not words or words[0].rpartition("/")[2] in EVERYDAY:
        return []
    return [] if words[0] == "git" and words[1:] and words[1] in _LOOKING else words


def _without_own(text: str) -> str:
    """`text` without blocks that khms put in; of one without an end, its first line goes."""
    parts = []
    while OPENING in text:
        before, _, rest = text.partition(OPENING)
        parts.append(before)
        ends = rest.find(CLOSING)
        text = rest[ends + len(CLOSING) :] if ends >= 0 else rest.partition("\n")[2]
    return "".join([*parts, text])


def _without_chrome(text: str) -> str:
    for tag in CHROME:
        if f"<{tag}" in text:
            text = _without_tag(text, tag)
    return text


def _without_tag(text: str, tag: str) -> str:
    """`text` without the tag's blocks. One that never ends takes the rest with it at the text's beginning; anywhere
    else somebody is writing about the tag, and only the tag goes."""
    opening, closing = f"<{tag}", f"</{tag}>"
    if text.lstrip().startswith(opening) and closing not in text:
        return ""
    parts, at = [], 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start)) >= 0:
        parts.append(text[at:start])
        at = end + len(closing)
    return "".join([*parts, text[at:]]).replace(opening, " ").replace(closing, " ")


def _without_pastes(text: str) -> str:
    """`text` with each run of a machine's lines cut down to those that speak of an error."""
    kept: list[str] = []
    run: list[str] = []
    fenced = False
    for line in text.splitlines():
        fence = line.lstrip().startswith(("```", "~~~"))
        if fenced or fence or _is_machine(line) or (run and not line.strip()):
            run.append(line)
        else:
            kept += _cut(run)
            run = []
            kept.append(line)
        fenced = fenced is not fence
    return "\n".join([*kept, *_cut(run)])


def _cut(run: list[str]) -> list[str]:
    if len(run) < PASTED and all(len(line) <= LONG for line in run):
        return run
    return [line[:LONG] for line in run if any(word in line.lower() for word in _ERRORS)][:TELLING]


def _is_machine(line: str) -> bool:
    """Whether a line looks like one of a log, a trace, code or data, rather than of prose or of a list."""
    text = line.strip()
    if not text:
        return False
    if len(text) > LONG and text[:LONG].isascii() and text.count(" ") * 15 < len(text):
        return True
    first = text.split(None, 1)[0]
    if first in ("-", "*", "•") or (first[:-1].isdigit() and first[-1] in ".)"):
        return False
    return line.startswith(("  ", "\t")) or text[0] in "[{}<>=+|@#$/" or text[0].isdigit() or text[-1] in "{};"


def _shorten(text: str, limit: int) -> str:
    """At most `limit` characters: the beginning and the end, where questions stand. Lone surrogates go."""
    text = text.strip().encode("utf-8", "replace").decode("utf-8")
    if len(text) <= limit:
        return text
    half = (limit - 1) // 2
    first, last = text[:half].rpartition(" ")[0], text[len(text) - half :].partition(" ")[2]
    return f"{first.rstrip()}\n{last.lstrip()}" if first and last else text[:limit].strip()
