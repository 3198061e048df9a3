"""A look at every configured server, as its host would start it: does it answer, and with these tools?"""

import os
import shlex
import tempfile
from pathlib import Path
from typing import TextIO, cast

from khms.hosts import servers
from khms.hosts.servers import Configured
from khms.mcp_server.tools import TOOLS
from khms.measure.doctor import BAD, NOTE, OK, Result

PATIENCE = 30.0  # seconds that a server has to start and to answer; Codex gives 10, on a machine that is not asleep


def examine(project: Path) -> list[Result]:
    """One result for each entry of khms's in a host's settings, and one where there is none."""
    found = [_result(entry, project) for entry in servers.configured(project)]
    hosts = ", ".join(servers.PLACES)
    return found or [Result("servers", NOTE, "no host has khms's tools", mend=f"khms mcp install HOST ({hosts})")]


def _result(entry: Configured, project: Path) -> Result:
    check, where = entry.host, str(entry.path)
    again = f"khms mcp install {entry.host}" + (" --scope project" if entry.scope == "project" else "")
    if entry.problem:
        return Result(check, BAD, entry.problem, where=where, mend=f"mend the file, or {again}")
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        try:
            version, tools = asked(entry, project, cast("TextIO", said))
        except Exception as error:
            why = _cause(error)
            said.seek(0)
            last = (said.read()[-2000:].strip().splitlines() or [""])[-1]
            message = f"the server does not answer: {why}" + (f" ({last[:200]})" if last else "")
            return Result(check, BAD, message, where=f"{where}: {shlex.join(entry.words)}", mend=again)
    missing = [name for name in TOOLS if name not in tools]
    if missing:
        message = f"khms {version} answers, without the tools {', '.join(missing)}"
        return Result(check, BAD, message, where=f"{where}: {shlex.join(entry.words)}", mend=again)
    return Result(check, OK, f"{entry.scope}: khms {version} answers with {len(tools)} tools", where=where)


def asked(entry: Configured, project: Path, said: TextIO) -> tuple[str, list[str]]:
    """The server's version and the names of its tools; what it writes to standard error goes to `said`. Raises whatever
    keeps it from answering."""
    import anyio
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    command = StdioServerParameters(
        command=entry.words[0],
        args=list(entry.words[1:]),
        env={**os.environ, **dict(entry.env)},
        cwd=str(project),
    )

    async def visit() -> tuple[str, list[str]]:
        with anyio.fail_after(PATIENCE):
            async with Client(stdio_client(command, errlog=said)) as client:
                listed = await client.list_tools()
                version = client.server_info.version if client.server_info else ""
                return version, [tool.name for tool in listed.tools]

    return anyio.run(visit)


def _cause(error: BaseException) -> str:
    """What went wrong in words: of a group, what its first member says."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"not within {PATIENCE:.0f} seconds"
    return " ".join(str(error).split()) or type(error).__name__
