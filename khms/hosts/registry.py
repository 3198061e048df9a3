"""The hosts by their id. A module is imported when it is asked for."""

from __future__ import annotations

from khms.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from khms.hosts.base import Host

HOSTS = {
    "claude-code": "khms.hosts.claude_code",
    "codex": "khms.hosts.codex",
    "gemini": "khms.hosts.gemini",
    "copilot": "khms.hosts.copilot",
    "cursor": "khms.hosts.cursor",
    "opencode": "khms.hosts.opencode",
    "kiro": "khms.hosts.kiro",
    "hermes": "khms.hosts.hermes",
    "openclaw": "khms.hosts.openclaw",
}


def host(name: str) -> Host:
    """The host with this id; raises Usage, naming the known ones."""
    if name not in HOSTS:
        raise Usage(f"unknown host: {name}", hint=f"known hosts: {', '.join(HOSTS)}")
    module: Host = __import__(HOSTS[name], fromlist=["ID"])
    return module
