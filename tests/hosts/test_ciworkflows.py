"""The CI files: valid, with the least rights, inert to whatever a pull request holds; written and taken away whole."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from khms.errors import Refused
from khms.hosts import ciworkflows

REVIEW, APPROVE = ".github/workflows/khms-review.yml", ".github/workflows/khms-approve.yml"
# What a run line may not be built of: text that whoever opens a pull request chooses.
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
SAFE = {
    "github.event.pull_request.base.sha",
    "github.token",
    "secrets.KHMS_SIGNING_KEY",
}


@pytest.fixture
def top(tmp_path: Path) -> Path:
    folder = tmp_path / "top"
    folder.mkdir()
    return folder


def states(reports: list[ciworkflows.Report]) -> dict[str, str]:
    return {report.path: report.done for report in reports}


def github(top: Path, name: str) -> dict[Any, Any]:
    value = yaml.safe_load((top / name).read_text(encoding="utf-8"))
    assert isinstance(value, dict)
    return {"on" if key is True else key: item for key, item in value.items()}  # YAML 1.1 reads `on` as true


def steps(workflow: dict[Any, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_they_come_and_go_and_a_second_time_changes_nothing(top: Path) -> None:
    for host in ciworkflows.WORKFLOWS:
        first = states(ciworkflows.install(host, top, ".memory/", "main"))
        assert set(first.values()) == {"written"}
        held = {path: (top / path).read_bytes() for path in first}
        assert set(states(ciworkflows.install(host, top, ".memory/", "main")).values()) == {"unchanged"}
        assert {path: (top / path).read_bytes() for path in first} == held
        assert {report.done for report in ciworkflows.status(host, top)} == {"written"}
    for host in ciworkflows.WORKFLOWS:
        assert set(states(ciworkflows.uninstall(host, top)).values()) == {"removed"}
        assert {report.done for report in ciworkflows.status(host, top)} == {"absent"}
    assert list(top.iterdir()) == [], "no empty folder is left"


def test_one_of_an_older_khms_is_renewed_one_changed_by_hand_is_not(top: Path) -> None:
    ciworkflows.install("github", top, "", "main")
    older = ciworkflows._headed("github", b"name: khms review\n")
    (top / REVIEW).write_bytes(older)
    assert states(ciworkflows.install("github", top, "", "trunk")) == {REVIEW: "updated", APPROVE: "updated"}
    crlf = (top / REVIEW).read_bytes().replace(b"\n", b"\r\n")
    (top / REVIEW).write_bytes(crlf)
    assert states(ciworkflows.install("github", top, "", "trunk"))[REVIEW] == "updated"
    changed = (top / REVIEW).read_bytes().replace(b"3.13", b"3.12")
    (top / REVIEW).write_bytes(changed)
    (top / APPROVE).unlink()
    with pytest.raises(Refused, match="not as khms wrote it"):
        ciworkflows.install("github", top, "", "trunk")
    assert not (top / APPROVE).exists() and (top / REVIEW).read_bytes() == changed
    assert states(ciworkflows.status("github", top)) == {REVIEW: "kept", APPROVE: "absent"}
    assert states(ciworkflows.uninstall("github", top)) == {REVIEW: "kept", APPROVE: "absent"}
    assert (top / REVIEW).read_bytes() == changed


def test_another_bases_workflow_is_not_taken_over(top: Path) -> None:
    ciworkflows.install("github", top, "notes/", "main")
    with pytest.raises(Refused, match="another base"):
        ciworkflows.install("github", top, ".memory/", "main")


def test_a_link_out_of_the_repository_is_not_followed(top: Path) -> None:
    outside = top.parent / "out"
    outside.mkdir()
    (top / ".github").symlink_to(outside)
    with pytest.raises(Refused):
        ciworkflows.install("github", top, "", "main")
    assert list(outside.iterdir()) == []


def test_gitlabs_own_file_stays_as_it_is(top: Path) -> None:
    main = top / ciworkflows.MAIN
    main.write_text("stages: [test]\n", encoding="utf-8")
    assert ciworkflows.MAIN not in states(ciworkflows.install("gitlab", top, "", "main"))
    assert not ciworkflows.is_included(top)
    ciworkflows.uninstall("gitlab", top)
    assert main.read_text(encoding="utf-8") == "stages: [test]\n"
    main.unlink()
    ciworkflows.install("gitlab", top, "", "main")
    assert ciworkflows.is_included(top)
    assert yaml.safe_load(main.read_text(encoding="utf-8")) == {"include": [{"local": ".gitlab/khms.yml"}]}


def test_review_reads_only(top: Path) -> None:
    ciworkflows.install("github", top, ".memory/", "main")
    workflow = github(top, REVIEW)
    assert workflow["on"] == "pull_request" and workflow["permissions"] == {"contents": "read"}
    assert all("permissions" not in job for job in workflow["jobs"].values())
    checkout = steps(workflow)[0]
    assert checkout["with"] == {"fetch-depth": 0, "persist-credentials": False}
    text = "".join(f"{key}{value}" for step in steps(workflow) for key, value in step.items())
    assert "secrets." not in text and "github.token" not in text


def test_approve_waits_its_turn_and_writes_where_it_must(top: Path) -> None:
    ciworkflows.install("github", top, ".memory/", "release/[1]")
    workflow = github(top, APPROVE)
    assert workflow["on"] == {"push": {"branches": ["release/\\[1\\]"], "paths": [".memory/memory/inbox/**"]}}
    assert workflow["concurrency"] == {"group": "khms-approve", "cancel-in-progress": False}
    assert workflow["permissions"] == {"contents": "write", "pull-requests": "write"}
    assert steps(workflow)[0]["with"]["fetch-depth"] == 0


@pytest.mark.parametrize("name", [REVIEW, APPROVE])
def test_no_text_of_a_stranger_reaches_a_shell(top: Path, name: str) -> None:
    ciworkflows.install("github", top, ".memory/", "main")
    text = (top / name).read_text(encoding="utf-8")
    assert not re.search(r"^\s*pull_request_target", text, re.MULTILINE) and "workflow_run" not in text
    assert {found.strip() for found in EXPRESSION.findall(text)} <= SAFE
    for step in steps(github(top, name)):
        assert not EXPRESSION.search(step.get("run", "")), "values come by the environment"
        if "uses" in step:
            assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", step["uses"]), "pinned to a commit"


def test_the_jobs_of_gitlab(top: Path) -> None:
    ciworkflows.install("gitlab", top, "a$b/", "main")
    jobs = yaml.safe_load((top / ".gitlab/khms.yml").read_text(encoding="utf-8"))
    common = jobs.pop(".khms")
    assert common["variables"]["GIT_DEPTH"] == "0" and common["variables"]["KHMS_BASE"] == "a$$b"
    assert set(jobs) == {"khms-lint", "khms-audit", "khms-approve"}
    for name, job in jobs.items():
        assert job["extends"] == ".khms" and job["rules"][0]["if"]
        if name != "khms-approve":
            assert job["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "merge_request_event"'}]
            report = job["artifacts"]["reports"]["codequality"]
            assert job["artifacts"]["when"] == "always" and job["script"][-1].endswith(f"> {report}")
            assert "TOKEN" not in str(job)
    assert jobs["khms-approve"]["resource_group"] == "khms-approve"
    assert jobs["khms-approve"]["rules"][0]["changes"] == ["a$b/memory/inbox/**/*"]
    for job in jobs.values():
        for line in job["script"]:
            assert not re.search(r"CI_(MERGE_REQUEST_TITLE|COMMIT_(MESSAGE|TITLE|REF_NAME|DESCRIPTION))", line)


@pytest.mark.parametrize("prefix", ['a "b"/', "a: b #c/", "ünï/", "it's/"])
def test_a_bases_name_stays_a_value(top: Path, prefix: str) -> None:
    ciworkflows.install("github", top, prefix, "main")
    assert github(top, REVIEW)["env"]["KHMS_BASE"] == prefix.rstrip("/")


def test_a_name_that_is_an_expression_is_refused(top: Path) -> None:
    with pytest.raises(Refused, match="expression"):
        ciworkflows.install("github", top, "${{ secrets.X }}/", "main")
    assert list(top.iterdir()) == []
