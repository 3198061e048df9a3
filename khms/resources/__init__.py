"""Where the shipped data lies: schemas, hooks, templates, site, the embedding model.

The wheel carries the five folders inside this package; in a checkout they stand at its top.
"""

from pathlib import Path

_HERE = Path(__file__).parent


def folder(name: str) -> Path:
    """The folder `name` of shipped data, whichever way khms was installed."""
    inside = _HERE / name
    return inside if inside.is_dir() else _HERE.parents[1] / name
