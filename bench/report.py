"""BENCHMARKS.md from the figures: the same figures, the same bytes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bench.figures import NAMES
from bench.sets import CHAT, TITLED

HEAD = """# Benchmarks

Written by `make bench`; do not edit. Figures of one machine: compare within a table, not with those of another.
"""
SPEED = """## Speed and size

`khms bench`, over a made-up base. P is the time that this Python takes to start and do nothing, measured beside each
command; a ratio to it says more than milliseconds on a shared machine. Medians after a warm-up.
"""
ANSWERS = """## Right answers

Documents as Markdown files in a folder, questions as they were written, scored by the ids returned and nothing else:
recall@k is the share of the relevant documents among the first k, MRR@10 the mean of one by the rank of the first
relevant one, all in percent. Conversations are five of LoCoMo (research data, CC BY-NC 4.0, not included), each a base
of its own and each turn a document; adversarial questions, which a conversation does not answer, are scored apart. The
engineering cards are asked for by an identifier in them, or by a paraphrase that shares no word with them. The notes
are a public knowledge base (CC BY 4.0, not included). What khms answers is fixed by figures that were chosen with these
sets in view; what they did not see is in tests/recall.
"""
BESIDE = """## Beside other tools

Each in an environment of its own, used as its documentation says, over the same files and questions, by the same
scorer; a conversation counts here only where every tool went through it.
"""
TIMES = """## How long a question takes

Over the engineering cards. Whole: the command as a person types it, a process from start to end, also in P. Warm: the
same question inside a process of the tool that has all it needs loaded. Indexing is from nothing, with the tool's own
start. Installed is what its own environment takes on disk, models not counted.
"""


def render(final: Mapping[str, Any]) -> str:
    """The whole file."""
    parts = [HEAD, *(_speed(final)), ANSWERS, *_tables(final["answers"]), *_silence(final["silence"])]
    parts += [BESIDE, *_tables(final["beside"]), *_tools(final["times"], final["how"]), *_missing(final["missing"])]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts if part)


def _speed(final: Mapping[str, Any]) -> Iterator[str]:
    yield f"Measured on {final['date']}."
    if not final["speed"]:
        return
    yield SPEED
    for report in final["speed"]:
        yield (
            f"A base of {report['cards']:,} cards, {report['runs']} runs, P {report['bare_ms']:.1f} ms. "
            f"{report['machine']}."
        )
        yield table(
            ("what", "measured", "to reach", ""),
            [
                (
                    row["what"],
                    "not measured" if row["value"] is None else f"{row['value']:.2f} {row['unit']}",
                    f"{row['limit']:g} {row['unit']}",
                    row["note"] or ("reached" if row["reached"] else "not reached"),
                )
                for row in report["rows"]
            ],
        )


def _tables(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A table for each kind of task."""
    for kind, title in NAMES.items():
        held = [row for row in rows if row["task"] == kind]
        if not held:
            continue
        names = list(dict.fromkeys(name for row in held for name in row["figures"]))
        counts = ", ".join(sorted({f"{row['asked']:,}" for row in held}))
        more = sorted({row["apart"] for row in held if row["apart"]})
        apart = f" and {', '.join(f'{number:,}' for number in more)} adversarial ones" if more else ""
        chats = f" to {_conversations(held)}" if kind in (CHAT, TITLED) else ""
        yield f"### {title[0].upper()}{title[1:]}\n\n{counts} questions{apart}{chats}."
        cells = [(row["label"], *(f"{row['figures'][name]:.1f}" for name in names)) for row in held]
        yield table(("", *names), cells)


def _conversations(rows: Sequence[Mapping[str, Any]]) -> str:
    numbers = sorted({len(row["on"]) for row in rows})
    return f"{' or '.join(map(str, numbers))} conversation{'s'[: numbers != [1]]}"


def _silence(told: Mapping[str, float]) -> Iterator[str]:
    if told:
        yield "### Unrelated questions that get no answer\n\nOf khms, both channels, in percent."
        yield table(("documents, questions", "silent"), [(name, f"{value:.1f}") for name, value in told.items()])


def _tools(times: Sequence[Mapping[str, Any]], how: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if times:
        yield TIMES
        yield table(
            ("", "whole, ms", "whole, P", "warm, ms", "indexing, s", "installed, MiB"),
            [
                (
                    row["label"],
                    f"{row['whole_ms']:,.0f}",
                    f"{row['whole_p']:,.1f}",
                    f"{row['warm_ms']:,.1f}",
                    f"{row['index_s']:,.1f}",
                    "-" if row["size"] is None else f"{row['size'] / 2**20:,.0f}",
                )
                for row in times
            ],
        )
    if how:
        yield "## What was run"
        yield "\n".join(f"- {row['name']} {row['version']} ({row['licence']}): {row['how']}." for row in how)


def _missing(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "## What was not measured"
    lines = [f"- {row['label']}, {row['what']}: {row['why']}." for row in rows]
    lines.append(
        "- Answers written by a language model from what was found: none of this needs one, so none is judged."
    )
    yield "\n".join(lines)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
