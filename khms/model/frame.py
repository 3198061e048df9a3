"""The frame around injected text, and what makes content unable to forge it.

On the path of every hook: no import at all, and text that is plain already is handed back as it is.
"""

FRAME_HEAD = "[khms] Reference data from {path}; open the file before relying on it"
FRAME_TAIL = "[/khms]"
FRAME_START = FRAME_HEAD.partition("{")[0]
RUN_MARKER = "[khms-run "


def run_marker(run: str) -> str:
    """The first line of every prompt of a nightly run: a transcript with such a line is khms's own doing."""
    return f"{RUN_MARKER}{run}]"


# The names by which hosts and models tell the parts of a conversation apart; a name that begins so counts too.
_TAGS = (
    "system", "sys>", "user", "human", "assistant", "developer", "admin", "tool", "function", "instruction", "inst",
    "important", "im start", "im end", "im sep", "endof", "begin of", "end of", "start header", "end header", "eot",
    "command", "local command", "task notification", "hook", "khms", "antml", "invoke", "parameter", "thinking",
    "think", "environment", "memory", "context", "available skills", "claude", "persistent", "policy", "prompt",
)  # fmt: skip
_BRACKETED = ("khms", "system", "sys]", "inst", "assistant", "user]", "human]", "developer", "admin", "tool")

_tables: list[dict[int, str | None]] = []


def invisible() -> dict[int, str | None]:
    """For `str.translate`: what becomes of characters that draw nothing, reorder others or drive a terminal."""
    return _made()[0]


def _made() -> list[dict[int, str | None]]:
    """The two tables of this module, made when the first text needs them."""
    if not _tables:
        gone: dict[int, str | None] = {}
        for first, last in (
            (0x00, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160),
            (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F),
            (0x3164, 0x3164), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0x1D173, 0x1D17A),
            (0xE0000, 0xE01EF),
        ):  # fmt: skip
            gone.update(dict.fromkeys(range(first, last + 1)))
        gone.update(dict.fromkeys(range(0xD800, 0xE000), "\ufffd"))  # lone surrogates: no encoder takes them
        gone.update(dict.fromkeys((0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x85, 0x2028, 0x2029), " "))
        # The shadow is a copy of the text of the same length in which look-alikes are ASCII and small.
        shadow: dict[int, str | None] = {}
        for code in range(0x21, 0x7F):
            small = chr(code).lower()
            shadow[code] = shadow[0xFEE0 + code] = " " if small in "/|\\-_:" else small
        shadow.update(dict.fromkeys(map(ord, "〈《‹«⟨❮˂"), "<"))
        shadow.update(dict.fromkeys(map(ord, "【〔⟦❲"), "["))
        shadow.update(dict.fromkeys((0xA0, 0x2010, 0x2011, 0x3000), " "))
        _tables.extend((gone, shadow))
    return _tables


def neutralise(text: str) -> str:
    """`text` as one line without control, invisible or reordering characters, unable to open or close the frame or to
    pass for a part of the conversation: in `[khms]`, `<system-reminder>` and their like the bracket becomes round.
    """
    if not text.isprintable() or not text.isascii():
        text = _without_escapes(text).translate(invisible())
    if "[" not in text and "<" not in text and text.isascii():
        return text
    shadow = text.translate(_made()[1])
    cuts = [i for sign, names in (("<", _TAGS), ("[", _BRACKETED)) for i in _openings(shadow, sign, names)]
    for i in cuts:
        text = text[:i] + "(" + text[i + 1 :]
    return text


def framed(path: str, lines: list[str]) -> str:
    """`lines`, each neutralised, between head and tail; nothing where there are no lines."""
    body = [neutralise(line) for line in lines]
    return "\n".join([FRAME_HEAD.format(path=neutralise(path)), *body, FRAME_TAIL]) if body else ""


def _openings(shadow: str, sign: str, names: tuple[str, ...]) -> list[int]:
    """Where `sign`, doubled or not, stands before one of `names`; blanks, slashes and bars between do not matter.

    A square bracket that is a Markdown link's stays, unless it says khms.
    """
    found, at = [], shadow.find(sign)
    while at >= 0:
        name = shadow[at + 1 : at + 60].lstrip(" " + sign)
        link = sign == "[" and not name.startswith("khms") and name.partition("]")[2].startswith("(")
        if name.startswith(names) and not link:
            found.append(at)
        at = shadow.find(sign, at + 1)
    return found


def _without_escapes(text: str) -> str:
    """`text` without terminal sequences: ESC and what belongs to it, in seven and in eight bits."""
    for eight, seven in (("\x9b", "\x1b["), ("\x9d", "\x1b]"), ("\x90", "\x1bP"), ("\x9c", "\x1b\\")):
        text = text.replace(eight, seven)
    if "\x1b" not in text:
        return text
    first, *parts = text.split("\x1b")
    kept, within = [first], False
    for part in parts:
        if within:  # a string (OSC, DCS, …) lasts until BEL, or until this part's ESC \
            within = not part.startswith("\\")
            kept.append("" if within else part[1:])
        elif part[:1] == "[":
            end = 1
            while end < len(part) and " " <= part[end] <= "?":
                end += 1
            kept.append(part[end + 1 :] if part[end : end + 1] >= "@" else part[end:])
        elif part[:1] and part[0] in "]PX^_":
            _, bell, rest = part.partition("\x07")
            within = not bell
            kept.append(rest)
        else:
            kept.append(part[1:])
    return "".join(kept)
