"""What stands in the folders that are shared: a host's plugin with its marketplace, an extension, the bare skill.

All of it goes to other machines, so khms is called by its name alone. One folder can serve all three hosts:

    .claude-plugin/marketplace.json     Claude Code looks here for plugins …
    .agents/plugins/marketplace.json    … Codex here …
    khms/                               … and this is the plugin, of both
    gemini-extension.json, hooks/, …    Gemini CLI takes the folder itself

Seen with Claude Code 2.1.332, Codex 0.171, Gemini CLI 0.61: Codex reads the hooks that its manifest names and leaves
`hooks/hooks.json`, which is Claude's, alone; Gemini CLI knows no other place than `hooks/hooks.json`.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from khms import __version__
from khms.hosts import registry
from khms.hosts.entries import handler_of
from khms.resources import folder

if TYPE_CHECKING:
    from khms.hosts.base import Host

NAME = "khms"
MARKET = "khms-market"
SKILL = "skills"  # the kind that is the skill without a plugin around it
DESCRIPTION = "Reviewed memory for coding agents: recall what was learned, note what the next session must know"
_SERVERS = {"mcpServers": {NAME: {"command": NAME, "args": ["mcp"]}}}
_OWNER = {"name": NAME}


def files(kinds: Iterable[str]) -> dict[str, bytes]:
    """Every file for these kinds, by its path in the folder."""
    found: dict[str, bytes] = {}
    for kind in kinds:
        found.update(KINDS[kind]())
    return found


def hooks(host: "Host") -> dict[str, Any]:
    """The hooks file of a plugin: what the host's own settings would hold, with a command for any machine."""
    said, groups = command(host), {}
    for watch in host.WATCHES:
        group: dict[str, Any] = {"matcher": watch.matcher} if watch.matcher else {}
        groups[watch.event] = [group | {"hooks": [handler_of(host, watch, said)]}]
    return {"hooks": groups}


def command(host: "Host") -> str:
    """What a shell runs at an event. A machine without khms, or with one that does not know the host, is silent; so is
    one whose settings of the host run khms already."""
    return f"{NAME} hook run --host {host.ID} --plugin 2>/dev/null || true"


def _claude() -> dict[str, bytes]:
    plugin = {"name": NAME, "version": __version__, "description": DESCRIPTION, "author": _OWNER, "license": "MIT"}
    listed = {"name": NAME, "source": f"./{NAME}", "description": DESCRIPTION, "version": __version__}
    market = {"name": MARKET, "owner": _OWNER, "description": DESCRIPTION, "plugins": [listed]}
    return _plugin() | {
        ".claude-plugin/marketplace.json": _json(market),
        f"{NAME}/.claude-plugin/plugin.json": _json(plugin),
        f"{NAME}/hooks/hooks.json": _json({"description": DESCRIPTION} | hooks(registry.host("claude-code"))),
    }


def _codex() -> dict[str, bytes]:
    plugin = {
        "name": NAME,
        "version": __version__,
        "description": DESCRIPTION,
        "skills": "./skills/",
        "mcpServers": "./.mcp.json",
        "hooks": "./hooks/codex.json",
        "interface": {"displayName": NAME, "shortDescription": DESCRIPTION, "category": "Productivity"},
    }
    listed = {
        "name": NAME,
        "source": {"source": "local", "path": f"./{NAME}"},
        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
        "category": "Productivity",
    }
    return _plugin() | {
        ".agents/plugins/marketplace.json": _json({"name": MARKET, "plugins": [listed]}),
        f"{NAME}/.codex-plugin/plugin.json": _json(plugin),
        f"{NAME}/hooks/codex.json": _json(hooks(registry.host("codex"))),
    }


def _gemini() -> dict[str, bytes]:
    extension = {"name": NAME, "version": __version__, "description": DESCRIPTION, **_SERVERS}
    return {
        "gemini-extension.json": _json(extension | {"contextFileName": "KHMS.md"}),
        "KHMS.md": _page("section.md"),
        "hooks/hooks.json": _json(hooks(registry.host("gemini"))),
        f"skills/{NAME}/SKILL.md": skill(),
    }


def _plugin() -> dict[str, bytes]:
    """What the plugins of both hosts hold."""
    return {
        f"{NAME}/.mcp.json": _json(_SERVERS),
        f"{NAME}/README.md": _page("README.md"),
        f"{NAME}/skills/{NAME}/SKILL.md": skill(),
    }


def skill() -> bytes:
    """The skill's SKILL.md."""
    return _page("SKILL.md").replace(b"@VERSION@", __version__.encode())


def section() -> bytes:
    """What a project's AGENTS.md says of khms, without marks around it."""
    return _page("section.md")


KINDS: Mapping[str, Callable[[], dict[str, bytes]]] = {
    "claude-code": _claude,
    "codex": _codex,
    "gemini": _gemini,
    SKILL: lambda: {"SKILL.md": skill()},
}


def _page(name: str) -> bytes:
    return (folder("templates") / "plugin" / name).read_bytes()


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode("utf-8")
