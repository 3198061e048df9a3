"""The git hosts by their id. A module is imported when it is asked for."""

import os
from collections.abc import Mapping
from typing import cast

from khms.errors import Refused
from khms.hosts.forge import Forge, Job, Place

FORGES = {
    "github": "khms.hosts.github",
    "gitlab": "khms.hosts.gitlab",
}


def forge(name: str) -> Forge:
    return cast("Forge", __import__(FORGES[name], fromlist=["ID"]))


def serving(place: Place) -> Forge | None:
    """The host that holds this repository, None for one that khms does not know."""
    return next((made for name in FORGES if (made := forge(name)).serves(place.host)), None)


def this_job(env: Mapping[str, str] = os.environ) -> Job:
    """The CI job that this process is; raises Refused outside of one."""
    for name in FORGES:
        job = forge(name).job(env)
        if job is not None:
            return job
    raise Refused(
        "this is no CI job of a known git host",
        hint="it runs on push, in the job that the host starts; at a terminal: khms approve UNIT",
    )
