"""The order of the layers, held over the import statements: a module imports its siblings and what stands before."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "khms"
LAYERS = (
    "values", "errors", "options", "config", "resources", "model", "store", "check", "index", "recall", "hosts",
    "pipeline",
    "importers", "skills", "workflow", "render", "measure", "hooks", "server", "mcp_server", "cli",
)  # fmt: skip
ABOVE_ALL = ("__init__", "__main__")
HEAVY = {
    "click", "detect_secrets", "frontmatter", "git", "jinja2", "jsonschema", "jsonschema_rs", "markdown_it", "mcp",
    "model2vec", "numkong", "numpy", "onnxruntime", "platformdirs", "rich", "tantivy", "yaml",
}  # fmt: skip
# What hooks and `mark` load at every moment of a session.
LIGHT = (
    "__init__", "__main__", "values", "errors", "options", "config", "model", "store.files", "store.lock",
    "store.layout", "store.gitdir", "store.journal", "hooks", "recall", "server", "cli.__init__", "cli.jot",
    "cli.quick",
)  # fmt: skip


def modules() -> dict[str, Path]:
    """Every module of the package by its name below `khms`, packages as `folder.__init__`."""
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
        for path in sorted(PACKAGE.rglob("*.py"))
        if "__pycache__" not in path.parts
    }


def layer(module: str) -> int:
    """Where the module stands; what belongs to no layer stands below all of them."""
    first = module.split(".")[0]
    return LAYERS.index(first) if first in LAYERS else len(LAYERS)


def imported(node: ast.AST, module: str) -> Iterator[str]:
    """The dotted names that one import statement brings in, relative ones resolved."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        start = node.module or ""
        if node.level:
            parents = ["khms", *module.split(".")][: -node.level]
            start = ".".join([*parents, *filter(None, [node.module])])
        yield start
        yield from (f"{start}.{alias.name}" for alias in node.names)


def at_the_top(node: ast.AST) -> Iterator[ast.AST]:
    """The statements that run when the module is loaded: not in functions, not under TYPE_CHECKING."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from at_the_top(child)


@pytest.mark.parametrize("module", [name for name in modules() if name not in ABOVE_ALL])
def test_imports_go_up_the_layers_only(module: str) -> None:
    assert layer(module) < len(LAYERS), f"{module} belongs to no layer"
    tree = ast.parse(modules()[module].read_text(encoding="utf-8"))
    wrong = set()
    for node in ast.walk(tree):
        for name in imported(node, module):
            target = name.removeprefix("khms.")
            if name.startswith("khms.") and target.split(".")[0] in LAYERS and layer(target) > layer(module):
                wrong.add(name)
    assert not wrong, f"{module} imports what stands below it: {sorted(wrong)}"


def light_modules() -> list[str]:
    return [name for name in modules() if any(name == held or name.startswith(held + ".") for held in LIGHT)]


@pytest.mark.parametrize("module", light_modules())
def test_nothing_heavy_at_the_top_of_what_hooks_load(module: str) -> None:
    tree = ast.parse(modules()[module].read_text(encoding="utf-8"))
    heavy = {name for node in at_the_top(tree) for name in imported(node, module) if name.split(".")[0] in HEAVY}
    assert not heavy


def test_nothing_heavy_comes_along_with_what_hooks_load() -> None:
    """The same seen from outside: what is really loaded, by whatever way."""
    names = [f"khms.{name.removesuffix('.__init__')}" for name in light_modules() if name not in ABOVE_ALL]
    code = (
        "import importlib, json, sys\n"
        f"heavy = {HEAVY!r}\n"
        "found = {}\n"
        f"for name in {names!r}:\n"
        "    before = set(sys.modules)\n"
        "    importlib.import_module(name)\n"
        "    came = {m.split('.')[0] for m in set(sys.modules) - before} & heavy\n"
        "    if came: found[name] = sorted(came)\n"
        "print(json.dumps(found))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True, cwd=ROOT)
    assert json.loads(done.stdout) == {}
