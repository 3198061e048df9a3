"""The hash that a record holds of a card: blind to what may change later, and to nothing else."""

import hashlib
import json

import pytest

from khms.model.approval import Approval, Approved, Transition, Waiver, approval_from, card_sha256, has_flow_links

CARD = b"""---
id: K-00001
status: active
title: A title
x_own: kept
links:
  derived_from: []
  supports: [K-00002]
  contradicts: []
  refuted_by: []
---
status: active is a line of the body
links:
  contradicts: x
"""


def replaced(*pairs: tuple[bytes, bytes]) -> bytes:
    data = CARD
    for old, new in pairs:
        assert old in data
        data = data.replace(old, new, 1)
    return data


@pytest.mark.parametrize(
    "changed",
    [
        replaced((b"status: active", b"status: refuted")),
        replaced((b"contradicts: []", b"contradicts: [K-00007]")),
        replaced((b"contradicts: []", b"contradicts:\n    - K-00007\n    - K-00008")),
        replaced((b"contradicts: []", b"contradicts:\n  - K-00007")),
        replaced((b"refuted_by: []", b"refuted_by:\n    # why\n    - K-00007")),
        replaced((b"  contradicts: []\n", b"")),
        CARD.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + CARD,
    ],
)
def test_what_may_change_does_not_change_the_hash(changed: bytes) -> None:
    assert card_sha256(changed) == card_sha256(CARD)


@pytest.mark.parametrize(
    "changed",
    [
        replaced((b"A title", b"A  title")),
        replaced((b"x_own: kept", b"x_own: lost")),
        replaced((b"supports: [K-00002]", b"supports: []")),
        replaced((b"status: active is", b"status: refuted is")),
        replaced((b"  contradicts: x", b"  contradicts: y")),
        CARD + b"\n",
        replaced((b"---\nstatus: active is", b"---\n\nstatus: active is")),
    ],
)
def test_everything_else_changes_it(changed: bytes) -> None:
    assert card_sha256(changed) != card_sha256(CARD)


def test_links_without_other_children_are_left_out_whole() -> None:
    bare = b"---\nid: K-00001\n---\nbody\n"
    full = b"---\nid: K-00001\nstatus: active\nlinks:\n  contradicts: []\n  refuted_by:\n    - K-00002\n---\nbody\n"
    assert card_sha256(full) == card_sha256(bare) == hashlib.sha256(bare).hexdigest()


def test_links_in_flow_style_are_hashed_whole() -> None:
    flow = b"---\nid: K-00001\nstatus: active\nlinks: {contradicts: []}\n---\n"
    assert has_flow_links(flow) and not has_flow_links(CARD)
    assert card_sha256(flow) == hashlib.sha256(flow).hexdigest()


def test_a_file_without_frontmatter_is_hashed_whole() -> None:
    for data in (b"", b"text\n", b"---\nnever closed\n"):
        assert card_sha256(data) == hashlib.sha256(data).hexdigest()


def test_a_record_reads_back_and_its_signed_bytes_leave_the_signature_out() -> None:
    record = Approval(
        "01J",
        "memory/inbox/u",
        "Zoë <z@example.org>",
        "2026-03-04T05:06:07+00:00",
        None,
        (Approved("K-00001", "C1", "a", "b", ("K-00009",)),),
        (Transition("K-00002", "links.contradicts", [], ["K-00001"], "why"),),
        (Waiver("quotes", "C1", "seen it"),),
    )
    assert approval_from(json.loads(record.file_bytes()), "x") == record
    assert json.loads(record.file_bytes())["signature"] is None
    signed = json.loads(record.signed_bytes())
    assert "signature" not in signed and "Zoë".encode() in record.signed_bytes()
    assert not record.signed_bytes().endswith(b"\n")
