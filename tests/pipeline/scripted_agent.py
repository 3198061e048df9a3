"""A program in an agent's place: it reads what it is asked, notes that it was called, and answers from a plan.

    scripted_agent.py PLAN LOG

PLAN is JSON, a list of rules {"when": words, "turn": n, "answer": text, "fate": …}: the first whose words stand in what
is asked, and which is meant for this turn of the question, counts. The answer `card` is a candidate made of the MARK's
own words, `marks` one MARK of the digest's first line with the word LEARNT. Fates are named below.
"""

import json
import os
import re
import subprocess
import sys
import time


def card(asked: str) -> str:
    shown = re.search(r"^# The MARK: .*?\n\n((?:\| .*\n)+)", asked, re.MULTILINE)
    line = shown.group(1).splitlines()[-1].partition(": ")[2] if shown else ""
    words = line.partition("] ")[2] if "MARK[" in line else line
    near = re.search(r"^## (K-\d+) ", asked, re.MULTILINE)
    relation = (
        {"kind": "new", "nearest": near.group(1), "because": "it is about something else"} if near else {"kind": "new"}
    )
    return json.dumps(
        {
            "verdict": "new",
            "candidate": {"title": words[:80], "type": "fact", "body": words, "tags": []},
            "quotes": [{"source": "journal", "text": words}],
            "relation": relation,
        }
    )


def marks(asked: str) -> str:
    lines = [line[2:] for line in asked.splitlines() if line.startswith("| ") and "LEARNT" in line]
    words = [line[line.index("LEARNT") :] for line in lines]
    return json.dumps({"marks": [{"kind": "decision", "text": one, "quote": one} for one in words]})


def hold(folder: str) -> None:
    """Tells the pipe `told` its parent, itself and a child in a session of its own; goes on once `gate` was written
    to."""
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    with open(f"{folder}/told", "w", encoding="utf-8") as told:
        told.write(f"{os.getppid()} {os.getpid()} {child.pid}\n")
    with open(f"{folder}/gate", encoding="utf-8") as gate:
        gate.read()


def fate(name: str) -> None:
    if name == "slow":
        time.sleep(600)
    elif name == "crash":
        sys.exit("it went wrong")
    elif name == "huge":
        sys.stdout.write("x" * 5_000_000)
    elif name.startswith("write "):
        with open(name.removeprefix("write "), "a", encoding="utf-8") as file:
            file.write("the agent was here\n")
    elif name.startswith("hold "):
        hold(name.removeprefix("hold "))
    elif name == "hook":
        os.system("khms hook run --host claude-code < /dev/null")


def main(plan: str, log: str) -> None:
    asked = sys.stdin.read()
    question = re.search(r"^# (?:The MARK: (\S+),|The digest of (\S+))", asked, re.MULTILINE)
    about = next((part for part in question.groups() if part), "") if question else "repair"
    turn = asked.count("# Your last answer does not count")
    with open(log, "a", encoding="utf-8") as file:
        file.write(json.dumps({"about": about, "turn": turn, "asked": asked, "environment": dict(os.environ)}) + "\n")
    with open(plan, encoding="utf-8") as file:
        rules = json.load(file)
    for rule in rules:
        if rule.get("when", "") in asked and rule.get("turn", turn) == turn:
            fate(rule.get("fate", ""))
            answer = rule.get("answer", "")
            print({"card": card, "marks": marks}[answer](asked) if answer in ("card", "marks") else answer)
            return


main(*sys.argv[1:])
