"""Findings in the form that a git host shows beside the changed lines of a pull request."""

import hashlib
import sys
from collections import Counter
from collections.abc import Sequence

import click

from khms.cli.output import clean, one_line, print_json
from khms.model.finding import Finding

STYLES = ("github", "gitlab")
# GitLab's scale goes from info to blocker.
_GITLAB = {"error": "critical", "warning": "minor"}

option = click.option(
    "--annotate", type=click.Choice(STYLES), help="Print the findings as this host's CI shows them in the diff."
)


def print_annotations(findings: Sequence[Finding], style: str, prefix: str) -> None:
    """Prints every finding for the host `style`; `prefix` is what stands before the base's paths in the repository.

    GitHub reads one command a line (`::error file=…,line=…,title=…::text`) and shows the first ten errors and the first
    ten warnings of a step, so errors come first. GitLab takes a Code Quality report, one JSON document; for whoever
    reads the job's log the findings stand on standard error too."""
    ordered = sorted(findings, key=lambda finding: finding.severity != "error")
    if style == "github":
        for finding in ordered:
            print(_command(finding, prefix))
        return
    print_json(_report(ordered, prefix))
    for finding in ordered:
        print(one_line(f"{prefix}{finding}"), file=sys.stderr)


def _command(finding: Finding, prefix: str) -> str:
    place = {"file": prefix + finding.path, "line": str(finding.line) if finding.line else "", "title": finding.code}
    told = ",".join(f"{name}={_property(value)}" for name, value in place.items() if value)
    kind = "error" if finding.severity == "error" else "warning"
    return f"::{kind} {told}::{_data(_told(finding))}"


def _told(finding: Finding) -> str:
    return finding.message + (f"\n{finding.mend}" if finding.mend else "")


def _data(text: str) -> str:
    """As GitHub's own toolkit escapes a command's text. A line break of any other kind becomes a blank."""
    text = "\n".join(one_line(line) for line in clean(text).split("\n"))
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return (
        clean(text)
        .replace("%", "%25")
        .replace("\r", "%0D")
        .replace("\n", "%0A")
        .replace(":", "%3A")
        .replace(",", "%2C")
    )


def _report(findings: Sequence[Finding], prefix: str) -> list[dict[str, object]]:
    """GitLab tells old findings from new ones by the fingerprint: it leaves the line out, which moves, and counts
    findings that are alike."""
    seen: Counter[tuple[str, ...]] = Counter()
    report: list[dict[str, object]] = []
    for finding in findings:
        path = prefix + finding.path
        same = (finding.code, path, finding.message)
        seen[same] += 1
        told = "\0".join((*same, str(seen[same]))).encode("utf-8", "surrogatepass")
        report.append(
            {
                "description": one_line(f"{finding.code} {_told(finding)}"),
                "check_name": finding.code,
                "fingerprint": hashlib.sha256(told).hexdigest(),
                "severity": _GITLAB.get(finding.severity, "info"),
                "location": {"path": path, "lines": {"begin": max(finding.line, 1)}},
            }
        )
    return report
