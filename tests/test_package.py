"""What is shipped: the wheel carries the data folders byte for byte, and the core stays light."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("schemas", "hooks", "templates", "site", "embedding")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    return path


def shipped(folder: str) -> dict[str, bytes]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", folder],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    return {name: (ROOT / name).read_bytes() for name in names}


def test_the_wheel_carries_the_data_folders_byte_for_byte(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {
            name.removeprefix("khms/resources/"): archive.read(name)
            for name in archive.namelist()
            if name.startswith(tuple(f"khms/resources/{folder}/" for folder in FOLDERS))
        }
    assert held == {name: data for folder in FOLDERS for name, data in shipped(folder).items()}
    assert {"schemas/card.schema.json", "hooks/client.py", "embedding/khms-en-256/model.safetensors"} <= held.keys()


def test_the_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < 25 * 1024 * 1024


def test_the_core_needs_few_packages() -> None:
    """Counted in the environment that runs the tests: everything that khms's own requirements draw in."""
    from importlib.metadata import requires
    from re import match

    def name(requirement: str) -> str:
        found = match(r"[A-Za-z0-9._-]+", requirement)
        assert found
        return found[0].lower().replace("_", "-").replace(".", "-")

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    todo = [name(item) for item in project["dependencies"]]
    seen: set[str] = set()
    while todo:
        package = todo.pop()
        if package not in seen:
            seen.add(package)
            todo += [name(item) for item in requires(package) or [] if "extra ==" not in item]
    assert len(seen) + 1 <= 30, sorted(seen)
