"""Which agent host started this process, told from the environment: who said a thing is set by the surface."""

import os
from collections.abc import Mapping

# Variables that a host sets for what it runs. CLAUDE_PROJECT_DIR is left out: three hosts set it.
VARIABLES: dict[str, str] = {
    "CLAUDECODE": "claude-code",
    "CLAUDE_CODE_SESSION_ID": "claude-code",
    "COPILOT_CLI": "copilot",
    "GEMINI_SESSION_ID": "gemini",
    "GEMINI_CLI": "gemini",
    "CURSOR_VERSION": "cursor",
    "CURSOR_AGENT": "cursor",
    "CODEX_SANDBOX": "codex",
    "CODEX_THREAD_ID": "codex",
    "OPENCODE": "opencode",
    "KIRO_SESSION_ID": "kiro",
    "HERMES_SESSION_ID": "hermes",
    "OPENCLAW_SESSION_ID": "openclaw",
    "AI_AGENT": "an agent",
}

# What agent hosts call the session in the environment of what they run.
SESSIONS = (
    "CLAUDE_CODE_SESSION_ID", "GEMINI_SESSION_ID", "CODEX_THREAD_ID", "COPILOT_SESSION_ID", "CURSOR_SESSION_ID",
    "OPENCODE_SESSION_ID", "KIRO_SESSION_ID", "HERMES_SESSION_ID", "OPENCLAW_SESSION_ID",
)  # fmt: skip


def agent_host(env: Mapping[str, str] = os.environ) -> str:
    """The id of the agent host that this process runs under, empty outside of one."""
    return next((host for name, host in VARIABLES.items() if env.get(name)), "")


def session(env: Mapping[str, str]) -> str:
    """The agent session that this process runs in, empty outside of one."""
    return next((env[name] for name in SESSIONS if env.get(name)), "")
