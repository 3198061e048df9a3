"""What the runs found, as the figures of the report: plain values that JSON can hold.

A row of answers is {tool, label, task, on, asked, apart, figures}: what one tool reached on a kind of task, `on` which
of them, over how many questions, and how many adversarial ones, that are scored apart.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench import score
from bench.contest import Tool
from bench.score import Asked
from bench.sets import ADVERSARIAL, CARDS, CHAT, EVERYDAY, NOTES, SOFTWARE, TITLED, Task

Found = Mapping[tuple[str, str], Mapping[str, Any]]  # (tool, task) -> the result of a run
CATEGORIES = ("1", "2", "3", "4")
NAMES = {
    CHAT: "conversations, turn by turn",
    TITLED: "the same, with speaker and date as titles",
    CARDS: "engineering cards",
    NOTES: "notes by their descriptions",
}


def key(task: Task) -> str:
    return f"{task.kind}.{task.name}"


def answers(tools: Sequence[Tool], tasks: Sequence[Task], found: Found) -> Iterator[dict[str, Any]]:
    """A row for each tool and kind of task, over the tasks that it went through."""
    for kind in NAMES:
        for tool in tools:
            done = [task for task in tasks if task.kind == kind and "found" in found.get((tool.name, key(task)), {})]
            if not done:
                continue
            asked = [one for task in done for one in _asked(task, found[tool.name, key(task)])]
            apart = len(score.of_kinds(asked, (ADVERSARIAL,)))
            yield {
                "tool": tool.name,
                "label": tool.label,
                "task": kind,
                "on": [task.name for task in done],
                "asked": len(asked) - apart,
                "apart": apart,
                "figures": {name: round(value, 1) for name, value in _figures(kind, asked).items()},
            }


def beside(tools: Sequence[Tool], tasks: Sequence[Task], found: Found) -> list[dict[str, Any]]:
    """The same where every tool has the same tasks: those that all went through which went through any of the kind."""
    shared = []
    for task in tasks:
        going = [t.name for t in tools if any("found" in found.get((t.name, key(x)), {}) for x in _alike(task, tasks))]
        if all("found" in found.get((name, key(task)), {}) for name in going):
            shared.append(task)
    return list(answers(tools, shared, found))


def silence(tool: Tool, tasks: Sequence[Task], found: Found) -> dict[str, float]:
    """The share of unrelated questions that got no answer, by documents and kind of question."""
    told = {}
    for task in tasks:
        result = found.get((tool.name, key(task)), {})
        for kind in (EVERYDAY, SOFTWARE):
            asked = [one for one in _asked(task, result) if one.kind == kind and not one.gold]
            if asked:
                told[f"{task.name}, {kind}"] = round(100 - score.answered(asked), 1)
    return told


def missing(tools: Sequence[Tool], found: Found, problems: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """What could not be run, and why."""
    for tool in tools:
        if why := problems.get(tool.name, ""):
            yield {"label": tool.label, "what": "the whole", "why": why}
        for (name, task), result in found.items():
            if name == tool.name and "problem" in result:
                yield {"label": tool.label, "what": task, "why": result["problem"]}


def _alike(task: Task, tasks: Sequence[Task]) -> list[Task]:
    return [other for other in tasks if other.kind == task.kind]


def _asked(task: Task, result: Mapping[str, Any]) -> Iterator[Asked]:
    for question in task.questions:
        if question.id in result.get("found", {}):
            yield Asked(question.kind, question.gold, tuple(result["found"][question.id]))


def _figures(kind: str, asked: Sequence[Asked]) -> dict[str, float]:
    if kind in (CHAT, TITLED):
        scored, apart = score.of_kinds(asked, CATEGORIES), score.of_kinds(asked, (ADVERSARIAL,))
        return {
            "recall@5": score.recall(scored, 5),
            "recall@10": score.recall(scored, 10),
            "answered": score.answered(scored),
            "adversarial recall@5": score.recall(apart, 5),
            "adversarial recall@10": score.recall(apart, 10),
        }
    if kind == CARDS:
        named, said = score.of_kinds(asked, ("identifier",)), score.of_kinds(asked, ("paraphrase",))
        return {
            "identifiers MRR@10": score.reciprocal(named),
            "paraphrases MRR@10": score.reciprocal(said),
            "paraphrases answered": score.answered(said),
        }
    return {
        "recall@1": score.recall(asked, 1),
        "recall@5": score.recall(asked, 5),
        "MRR@10": score.reciprocal(asked),
        "answered": score.answered(asked),
    }
