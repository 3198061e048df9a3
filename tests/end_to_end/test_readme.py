"""The commands of README.md do what it says, as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def blocks() -> list[str]:
    return re.findall(r"^```bash\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_five_minutes_by_hand(tmp_path: Path) -> None:
    """All blocks but the installation, one after the other in one shell that stops at the first failure."""
    install, *rest = blocks()
    assert "pip install ." in install and len(rest) >= 4
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", "\n".join(rest)],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "garden/memory/know/K-00002.md").is_file()
    assert "[khms] Reference data from" in done.stdout and "K-00001" in done.stdout.split("[khms]")[1]
    assert "2 active" in done.stdout


def test_links_lead_somewhere() -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (README.parent / name).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert (README.parent / target).exists(), f"{name}: {target}"
