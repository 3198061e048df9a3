"""The quick way to a card's hash and the careful one give the same."""

import hashlib

from hypothesis import example, given
from hypothesis import strategies as st

from khms.model import cardhash as approval

LINES = (
    b"---", b"--- ", b"...", b"id: K-00001", b"status: active", b"status:", b'"status": active', b"  status: x", b"",
    b"links:", b"links: {a: b}", b"links: # all", b"  supports: []", b"  contradicts: [K-00002]", b"  contradicts:",
    b"    - K-00002", b"  - K-00003", b"  refuted_by: []", b"title: status: links:", b"tags:", b"- a", b"# words",
    b"body", b"x\r",
)  # fmt: skip


def careful(data: bytes) -> str:
    data = approval.plain_bytes(data)
    head, rest = approval._frontmatter(data)
    kept = data if approval._is_flow(head) else b"".join(approval._without(head)) + rest
    return hashlib.sha256(kept).hexdigest()


@given(st.lists(st.sampled_from(LINES), max_size=14).map(lambda rows: b"---\n" + b"\n".join(rows)))
@example(b"---\nid: K-00001\nstatus: active\nlinks:\n  contradicts: []\n  refuted_by: []\n---\nbody\n")
@example(b"---\nid: K-00001\nstatus: active\nlinks:\n  contradicts: []\n  supports: []\ndate: x\n---\n---\nbody\n")
@example(b"---\nstatus: a\nlinks:\n  supports: []\n  contradicts:\n    - K-00002\n---\n")
@example(b"---\nstatus: a\nstatus: b\nlinks:\n  supports: []\n---\n")
@example(b"---\nstatus: a\nlinks:\n  supports: []\nlinks:\n  contradicts: []\n---\n")
def test_both_ways_give_the_same_hash(data: bytes) -> None:
    assert approval.card_sha256(data) == careful(data)
