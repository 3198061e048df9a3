"""The errors a person can act on, each with its exit code. `cli` shows them once; nothing else prints."""


class KhmsError(Exception):
    """Work cannot go on. `message` says what, `where` which file or place, `hint` what to do about it."""

    exit_code = 3

    def __init__(self, message: str, *, hint: str = "", where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.where = where

    def __str__(self) -> str:
        return "\n".join(part for part in (self.message, self.where, self.hint) if part)


class No(KhmsError):
    """The question was understood and its answer is no: nothing found, a check failed."""

    exit_code = 1


class Usage(KhmsError):
    """The call itself is wrong."""

    exit_code = 2


class Refused(KhmsError):
    """The input or the state is invalid; nothing was changed."""

    exit_code = 3


class Unavailable(KhmsError):
    """The environment failed: no base, no git, no identity, disk or permission."""

    exit_code = 4


class Busy(KhmsError):
    """Another process holds the lock."""

    exit_code = 75
