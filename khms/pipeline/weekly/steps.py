"""What the weekly run looks for, in the order in which its offers come before a reviewer. A step is one function over
the ground and one row here; it writes nothing. Steps for lessons, facts and episodes stand here once those tiers do.
"""

from collections.abc import Callable
from dataclasses import dataclass

from khms.pipeline.weekly import condensations, contradictions, principles, supersessions
from khms.pipeline.weekly.ground import Ground
from khms.pipeline.weekly.offer import Found


@dataclass(frozen=True, slots=True)
class Step:
    """`heading` stands over what the step tells in the report."""

    heading: str
    find: Callable[[Ground], Found]


STEPS: dict[str, Step] = {
    "supersessions": Step("Cards that replace others", supersessions.find),
    "contradictions": Step("Cards that stand against each other", contradictions.find),
    "principles": Step("Observations that share a shape", principles.find),
    "condensations": Step("Cards that a pattern carries", condensations.find),
}
