"""khms's lines in scripts of every make: where they go, that nothing else changes, what is refused."""

import shutil
import subprocess

import pytest

from khms.hosts import hookscript
from khms.hosts.hookscript import Unsafe

BLOCK = hookscript.lines("pre-commit", (".memory",), "/opt/my python/bin/python3")

SCRIPTS = {
    "plain": b"#!/bin/sh\necho theirs\n",
    "ends with exec": b"#!/usr/bin/env bash\nset -euo pipefail\nexec make check\n",
    "ends with exit": b"#!/bin/bash -e\nmake check\nexit 0\n",
    "one line": b"#!/bin/sh\n",
    "no line break": b"#!/bin/sh",
    "last line open": b"#!/bin/sh\necho theirs",
    "no shebang": b"npm test\n",
    "empty": b"",
    "strange bytes": b"#!/bin/sh\necho \xff\xfe\n",
    "exec next to it": b'#!/bin/sh\nexec "$(dirname "$0")/check" "$@"\n',
    "lefthook": b'#!/bin/sh\n\nif [ "$LEFTHOOK" = "0" ]; then\n  exit 0\nfi\ncall_lefthook run "pre-commit" "$@"\n',
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_taking_out_gives_back_the_bytes(script: bytes) -> None:
    held = hookscript.put(script, BLOCK)
    found = hookscript.find(held)
    assert found and hookscript.without(held, found) == script
    assert (found.bases, found.python, found.own) == ((".memory",), "/opt/my python/bin/python3", False)
    assert hookscript.put(held, BLOCK) == held, "a second time changes nothing"
    other = hookscript.lines("pre-commit", (".memory", "a 'b"), "")
    again = hookscript.put(held, other)
    changed = hookscript.find(again)
    assert changed and (changed.bases, changed.python) == ((".memory", "a 'b"), "")
    assert hookscript.without(again, changed) == script


@pytest.mark.parametrize("script", [SCRIPTS[name] for name in ("plain", "ends with exec", "ends with exit")])
def test_the_lines_stand_before_all_that_could_pass_them_by(script: bytes) -> None:
    first, _, rest = script.partition(b"\n")
    assert hookscript.put(script, BLOCK) == first + b"\n" + BLOCK + rest


def test_a_file_of_khms_alone() -> None:
    script = hookscript.alone(BLOCK)
    found = hookscript.find(script)
    assert script.startswith(b"#!/bin/sh\n") and found and found.own and hookscript.without(script, found) is None
    more = script + b"echo theirs\n"
    found = hookscript.find(more)
    assert found and not found.own and hookscript.without(more, found) == b"#!/bin/sh\necho theirs\n"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (b"#!/usr/bin/env python3\nprint()\n", "written for python3"),
        (b"#!/usr/bin/perl -w\n", "written for perl"),
        (b"#!/usr/bin/env -S node --no-warnings\n", "written for node"),
        (b"#!/usr/bin/fish\n", "written for fish"),
        (b"#!\n", "an unknown interpreter"),
        (b"\x7fELF\x02\x01\x01\0\0", "a program"),
        (b"#!/bin/sh\r\necho x\r\n", "Windows line ends"),
        (b"\xef\xbb\xbf#!/bin/sh\necho x\n", "byte-order mark"),
        (b"#!/bin/sh\n''''exec python3 \"$0\" \"$@\" # '''\nprint()\n", "another language"),
        (b'#!/bin/sh\n"exec" "python3" "$0" "$@"\nprint()\n', "another language"),
        (b'#!/bin/sh\n# the next line restarts \\\nexec tclsh "$0" "$@"\n', "another language"),
        (b'#!/bin/sh\n: """\nexec python3 x\n"""\n', "another language"),
    ],
)
def test_what_cannot_be_edited_is_refused(script: bytes, why: str) -> None:
    with pytest.raises(Unsafe, match=why) as refused:
        hookscript.put(script, BLOCK)
    assert refused.value.mend


@pytest.mark.parametrize("damage", ["second", "no end", "no start", "turned"])
def test_marks_that_do_not_pair_up(damage: str) -> None:
    held = hookscript.put(SCRIPTS["plain"], BLOCK)
    start, end = hookscript.START + b"\n", hookscript.END + b"\n"
    damaged = {
        "second": held + BLOCK,
        "no end": held.replace(end, b""),
        "no start": b"\n".join(line for line in held.split(b"\n") if not line.startswith(hookscript.START)),
        "turned": b"#!/bin/sh\n" + end + start,
    }[damage]
    with pytest.raises(Unsafe, match=r"line \d+: the marks"):
        hookscript.find(damaged)
    with pytest.raises(Unsafe):
        hookscript.put(damaged, BLOCK)


def test_a_mark_that_is_only_spoken_of_is_none() -> None:
    script = b"#!/bin/sh\necho '# >>> khms >>>'\n"
    assert hookscript.find(script) is None
    found = hookscript.find(hookscript.put(script, BLOCK))
    assert found and found.bases == (".memory",)


@pytest.mark.parametrize("name", hookscript.NAMES)
@pytest.mark.parametrize("shell", ["sh", "dash", "bash", "ksh", "zsh"])
def test_every_shell_reads_the_lines(name: str, shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}, which is not there")
    for python in ("", "/opt/it's here/python"):
        script = hookscript.alone(hookscript.lines(name, ("-x", "a'b", "two\nlines"), python))
        assert b"@" not in script.replace(b'"$@"', b"")
        done = subprocess.run([shell, "-n"], input=script, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
