"""The light digest is SHA-256."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from khms.model.digest import sha256_hex


@given(st.binary(max_size=300))
def test_it_is_the_standard_librarys(data: bytes) -> None:
    assert sha256_hex(data) == hashlib.sha256(data).hexdigest()
