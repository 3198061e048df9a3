"""The settings file of the host under test, in the test's own home."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def file(own_environment: Path) -> Path:
    return own_environment / ".claude" / "settings.json"


@pytest.fixture
def write(file: Path) -> Callable[[str | bytes], bytes]:
    def put(content: str | bytes) -> bytes:
        file.parent.mkdir(exist_ok=True)
        data = content if isinstance(content, bytes) else content.encode("utf-8")
        file.write_bytes(data)
        return data

    return put
