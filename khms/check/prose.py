"""What a body says in its own words: without code, quotations and the lists of quotes and links below it.

Every line stays where it is, so a place found in the prose is the place in the body.
"""

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_TAIL = re.compile(r"^\*\*(?:QUOTES|LINKS):\*\*.*", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(
    r"(`{1,3})(?!`)[^`]{1,2000}?\1(?!`)|\"[^\"]{1,1000}\"|“[^”]{1,1000}”|„[^“”]{1,1000}[“”]|«[^»]{1,1000}»|"
    r"(?<!\w)'[^'\n]{1,300}'(?!\w)|(?<!\w)‘[^’\n]{1,300}’(?!\w)|<!--.*?(?:-->|\Z)",
    re.DOTALL,
)


def prose(body: str) -> str:
    """`body` with everything blanked that it shows or cites."""
    if "**QUOTES:**" in body or "**LINKS:**" in body:
        body = _TAIL.sub(_blank, body)
    lines = body.split("\n")
    fence = ""
    for i, line in enumerate(lines):
        run = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if fence:
            closes = run is not None and run[1].startswith(fence) and not run[2].strip()
            fence = "" if closes else fence
            lines[i] = ""
        elif run is not None and not (run[1][0] == "`" and "`" in run[2]):
            fence = run[1]
            lines[i] = ""
        elif line.lstrip().startswith(">") or line.startswith(("    ", "\t")):
            lines[i] = ""
    # Quotations end with their paragraph, so a stray mark hides no more than that.
    return "\n\n".join(_QUOTED.sub(_blank, paragraph) for paragraph in "\n".join(lines).split("\n\n"))


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")
