"""A finding: one thing that is wrong with one file, as a value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """`code` is stable (KH001 …); `severity` is error or warning; `line` counts from 1, 0 is the whole file."""

    code: str
    severity: str
    path: str
    line: int
    message: str
    mend: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.code} {self.message}" + (f" ({self.mend})" if self.mend else "")

    def as_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}
