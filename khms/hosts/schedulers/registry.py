"""The schedulers by name, the one to prefer first. A module is imported when it is asked for."""

from importlib import import_module

from khms.errors import Unavailable, Usage
from khms.hosts.schedulers.base import Scheduler

SCHEDULERS = {
    "launchd": "khms.hosts.schedulers.launchd",
    "systemd": "khms.hosts.schedulers.systemd",
    "cron": "khms.hosts.schedulers.cron",
}


def scheduler(name: str) -> Scheduler:
    """The scheduler of this name; raises Usage, naming the known ones."""
    if name not in SCHEDULERS:
        raise Usage(f"unknown scheduler: {name}", hint=f"known: {', '.join(SCHEDULERS)}")
    module: Scheduler = import_module(SCHEDULERS[name])
    return module


def choose() -> Scheduler:
    """The first one that this machine can use; raises Unavailable, saying of each why it cannot."""
    told = []
    for name in SCHEDULERS:
        found = scheduler(name)
        why = found.why_not()
        if not why:
            return found
        told.append(f"{name}: {why}")
    hint = "install cron, or have your own scheduler run: khms nightly"
    raise Unavailable("this machine has no scheduler that khms knows", where="\n".join(told), hint=hint)
