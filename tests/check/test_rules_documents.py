"""Files that are no pages: records, receipts, unit.json, the registry, the settings."""

import os

import pytest


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("memory/approvals/01JDXKQZ8V7M3N5P9R2T4W6Y8A.json", '{\n  "schema": 1,,\n}', 2),
        ("memory/approvals/01JDXKQZ8V7M3N5P9R2T4W6Y8A.json", "[" * 100000, 1),
        ("memory/receipts/01JDXKQZ8V7M3N5P9R2T4W6Y8A.jsonl", '\n{"mark": "x"\n', 2),
        ("memory/inbox/u/unit.json", "[]", 1),
        ("memory/tags.yaml", "a: {}\nb: [x\n", 2),
        ("memory/tags.yaml", "a:\n  group: x\nb:\n  aliases: word\n", 4),
        ("memory/tags.yaml", b"a:\nb: \xff\n", 2),
        ("khms.toml", "[lint]\nmax_bytes = =\n", 2),
        ("khms.toml", "[git]\n\n[lint]\nmax_byte = 3\n", 4),
        ("khms.toml", '[lint]\nmax_bytes = "many"\n', 2),
        ("khms.toml", '[cards.types.note]\nlabels = ["A"]\n', 1),
    ],
)
def test_what_programs_write_is_checked_too(base, write, report, path, text, line) -> None:
    write(base, "khms.toml", "")
    write(base, path, text)
    (finding,) = (finding for finding in report().findings if finding.path == path)
    assert (finding.code, finding.line, finding.severity) == ("KH001", line, "error")
    assert finding.mend


def test_each_broken_receipt_has_its_line(base, write, found) -> None:
    good = '{"mark": "M-0123456789ab", "stage": "propose", "verdict": "new", "run": "r", "at": "2026-03-05"}'
    text = "\n".join([good, good.replace("propose", "guess"), "", good.replace("M-0123456789ab", "M-1"), good]) + "\n"
    write(base, "memory/receipts/01JDXKQZ8V7M3N5P9R2T4W6Y8A.jsonl", text)
    assert [line for _, _, line, _ in found("KH001")] == [2, 4]


def test_an_approval_record_is_named_after_its_id(base, add_card, approve, found) -> None:
    record = approve(add_card(base))
    other = record.with_name("01JDXKQZ8V7M3N5P9R2T4W6Y8B.json")
    record.rename(other)
    assert found("KH001") == [("KH001", other.name, 1, "error")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_without_permission_is_named(base, add_card, found) -> None:
    path = add_card(base)
    path.chmod(0)
    add_card(base, "K-00002", level="obs")
    assert [(code, name) for code, name, _, _ in found()] == [("KH001", "K-00001.md"), ("KH001", "K-00002.md")]
