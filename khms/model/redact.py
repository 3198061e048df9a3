"""Secrets by their shape: what `khms mark` takes out of a line before anything is written.

A table of vendors' published key forms, private key blocks, passwords in addresses and assignments. It knows shapes,
not entropy; `check/screening` adds the slow looks. Standard library only; a text without any of the cheap probes is
never given to `re`, which is not even imported then.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` and `collections.abc` would be half of what importing this module costs
    import re
    from collections.abc import Iterator

Span = tuple[int, int, str]

_START = r"(?<![A-Za-z0-9_-])"
_END = r"(?![A-Za-z0-9])"
_PEM = r"[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"

# name, probes of which one must occur (case matters), pattern. Every repetition is bounded, or can only begin at a
# word's start: 200 kB of a repeated prefix stay linear.
_PREFIXED: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("aws-key", ("AKIA", "ASIA", "ABIA", "ACCA"), _START + r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}" + _END),
    ("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{30,255}"),
    ("github-token", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{22,255}"),
    ("gitlab-token", ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-"), r"gl(?:pat|dt|rt|ptt|cbt)-[\w.-]{20,100}"),
    ("anthropic-key", ("sk-ant-",), _START + r"sk-ant-[A-Za-z0-9_-]{16,250}"),
    ("openai-key", ("sk-",), _START + r"sk-(?:[A-Za-z0-9]{1,12}[-_]){0,3}[A-Za-z0-9]{16}[A-Za-z0-9_-]{0,250}"),
    ("slack-token", ("xox", "xapp-"), r"(?<![A-Za-z0-9])(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,250}"),
    ("slack-webhook", ("hooks.slack.com/",), r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,150}"),
    ("discord-webhook", ("/api/webhooks/",), r"/api/webhooks/\d{10,25}/[\w-]{40,100}"),
    ("stripe-key", ("_live_", "_test_", "whsec_"), _START + r"(?:(?:sk|rk)_(?:live|test)|whsec)_[A-Za-z0-9]{16,250}"),
    ("google-key", ("AIza",), _START + r"AIza[A-Za-z0-9_-]{35}"),
    ("google-secret", ("GOCSPX-",), r"GOCSPX-[A-Za-z0-9_-]{20,60}"),
    ("google-token", ("ya29.",), r"(?<![A-Za-z0-9])ya29\.[A-Za-z0-9_-]{20,400}"),
    ("npm-token", ("npm_",), _START + r"npm_[A-Za-z0-9]{36}"),
    ("pypi-token", ("pypi-",), _START + r"pypi-[A-Za-z0-9_-]{50,400}"),
    ("rubygems-key", ("rubygems_",), r"rubygems_[0-9a-f]{48}"),
    ("docker-token", ("dckr_",), r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,60}"),
    ("huggingface-token", ("hf_",), _START + r"hf_[A-Za-z0-9]{30,60}"),
    ("sendgrid-key", ("SG.",), _START + r"SG\.[\w-]{16,40}\.[\w-]{16,80}"),
    ("twilio-key", ("SK",), _START + r"SK[0-9a-f]{32}" + _END),
    ("telegram-token", (":AA",), r"(?<![0-9A-Za-z])\d{8,10}:AA[\w-]{33}"),
    ("digitalocean-token", ("_v1_",), r"do[opr]_v1_[0-9a-f]{64}"),
    ("databricks-token", ("dapi",), _START + r"dapi[0-9a-f]{32}"),
    ("vault-token", ("hvs.", "hvb."), _START + r"hv[sb]\.[\w-]{24,300}"),
    ("shopify-token", ("shp",), r"shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}"),
    ("square-token", ("sq0",), _START + r"sq0[a-z]{3}-[\w-]{22,60}"),
    ("groq-key", ("gsk_",), _START + r"gsk_[A-Za-z0-9]{40,60}"),
    ("grafana-token", ("glsa_", "glc_"), _START + r"gl(?:sa|c)_[A-Za-z0-9_+/=]{32,400}"),
    ("linear-key", ("lin_",), _START + r"lin_(?:api|oauth)_[A-Za-z0-9]{32,64}"),
    ("notion-token", ("ntn_",), _START + r"ntn_[A-Za-z0-9]{40,60}"),
    ("atlassian-token", ("ATATT3",), r"ATATT3[\w=-]{50,300}"),
    ("tailscale-key", ("tskey-",), _START + r"tskey-[a-z]{2,10}-[A-Za-z0-9-]{20,80}"),
    ("age-key", ("AGE-SECRET-KEY-",), r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    ("mailchimp-key", ("-us",), r"(?<![0-9A-Za-z])[0-9a-f]{32}-us\d{1,2}" + _END),
)
_SHORTEST = 15  # characters of the shortest of these
_KEY_BLOCK = (
    rf"-----BEGIN {_PEM}(?![`'\"”’»])"
    rf"(?P<v>(?:(?!-----)[\s\S]){{0,20000}}-----END {_PEM}|(?:(?:\s|\\[nr])+[A-Za-z0-9+/=]{{16,}})*)"
)

_URL = (
    r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/?#:@\"'<>`\[\]]{0,100}:"
    r"(?P<v>[^\s@/\"'<>`]{1,200}(?:@[^\s@/\"'<>`]{1,100}){0,2}(?=@)|[^\s@\"'<>`]{1,200}(?=@))"
)

_JWT = _START + r"(?P<v>eyJ[\w-]{10,2000}\.eyJ[\w-]{10,4000}\.[\w-]{10,1000})"
_BEARER = r"(?:[Bb]earer|[Aa]uthorization:\s?Basic)\s{1,3}(?P<v>[\w.~+/=-]{16,500})"
_CURL = r"curl\b[^\n]{0,200}?\s(?:-u|--user)[ =]?['\"]?[^\s:'\"]{1,64}:(?P<v>[^\s'\"]{3,100})"

_PASSWORDS = (
    "password", "passwd", "passphrase", "passcode", "pwd", "passwort", "kennwort", "contraseña", "contrasena", "senha",
    "mot de passe", "пароль", "密码", "密碼", "口令", "パスワード", "비밀번호",
)  # fmt: skip
_KEYS = ("secret", "token", "credential", "credentials") + tuple(  # noqa: RUF005
    f"{word}{gap}key"
    for word in ("api", "access", "secret", "private", "auth", "account", "signing", "encryption")
    for gap in ("", "_", "-", " ")
)
_PARTS = ("key", "token", "secret", "pass", "pwd", "credential", "kennwort", "contrasena", "senha")
_LAST = frozenset(" \"'`*") | {word[-1] for word in _PASSWORDS + _KEYS}
_VALUE = (
    r"[=>]{0,2}\s{0,3}(?:([\"'`])(?P<quoted>[^\"'`\n]{4,200})\1|"
    r"(?P<bare>[^\s\"'`,;<>=(){}\[\]。，、；][^\s\"'`,;<>(){}\[\]。，、；]{3,199}))"
)
_OPTION = (
    r"--(?:[a-z]{1,20}-){0,2}(?:(?P<password>password|passwd|passphrase)|token|secret|(?:api|access|secret)-key)(?= )"
)
_SAID = (
    r"(?:password|passwd|passphrase|passwort|mot de passe|contraseña|senha|пароль)\s{1,3}"
    r"(?:is|was|ist|lautet|es|est|é)(?=\s)"
)

_NOT_SAID = {
    "empty", "example", "false", "hidden", "key", "none", "null", "optional", "prompt", "required", "str", "string",
    "text", "token", "true", "undefined", "unset", "value",
}  # fmt: skip
_FEEBLE = {
    "admin", "changeit", "changeme", "default", "dummy", "foobar", "guest", "pass", "passwd", "password", "placeholder",
    "postgres", "pwd", "root", "secret", "test", "user", "username",
}  # fmt: skip
_STAND_INS = ("...", "…", "xxxx", "••", "**", "your-", "your_", "redacted")

_compiled: dict[str, re.Pattern[str]] = {}


def known_prefix(name: str) -> bool:
    """True where the shape `name` is recognised by its own form alone, whatever stands around it."""
    return name not in ("jwt", "url-password", "bearer", "basic-auth", "credential")


def key_shapes(text: str, *, doubtful: bool = False) -> list[Span]:
    """(start, end, name) of each secret in `text`, in order, without overlaps.

    Placeholders (`sk-...`, `<your-key>`, `$TOKEN`, `xxxx`) and values that are a plain word are left out. `doubtful`
    adds what may be a secret: a feeble word as a password, a lone key header.
    """
    return _apart([span for span, sure in _found(text) if sure or doubtful])


def redact(text: str) -> str:
    """`text` with every secret shape, doubtful ones too, replaced by `[redacted:<name>]`; again it changes nothing.

    What is lost here can be said again, and what is kept may be kept for ever.
    """
    while spans := key_shapes(text, doubtful=True):
        parts, at = [], 0
        for start, end, name in spans:
            parts += [text[at:start], f"[redacted:{name}]"]
            at = end
        text = "".join(parts) + text[at:]
    return text


def _apart(spans: list[Span]) -> list[Span]:
    """Overlapping spans joined, under the name that has a form of its own if one has."""
    joined: list[Span] = []
    for start, end, name in sorted(spans, key=lambda span: span[0]):
        if joined and start < joined[-1][1]:
            first, last, before = joined[-1]
            joined[-1] = (first, max(end, last), before if known_prefix(before) or not known_prefix(name) else name)
        else:
            joined.append((start, end, name))
    return joined


def _pattern(source: str) -> re.Pattern[str]:
    if source not in _compiled:
        import re

        _compiled[source] = re.compile(source)
    return _compiled[source]


def _found(text: str) -> Iterator[tuple[Span, bool]]:
    """Each shape with whether it is sure enough to stop a text for."""
    lower = text.lower()
    long = " ".join([word for word in text.split() if len(word) >= _SHORTEST])
    if long:
        yield from _tokens(text, lower, long)
    if "PRIVATE KEY" in text:
        for match in _pattern(_KEY_BLOCK).finditer(text):
            sure = _weigh_block(text, match)
            if sure is not None:
                yield (*match.span(), "private-key"), sure
    if "curl" in lower:
        yield from _weighed("basic-auth", _CURL, text)
    for part in _PARTS if lower.isascii() else _PARTS + _PASSWORDS:
        if part in lower:
            yield from _assignments(text, lower)
            return


def _tokens(text: str, lower: str, long: str) -> Iterator[tuple[Span, bool]]:
    """The shapes that are, or stand beside, a long run without blanks; `long` holds those of `text`."""
    for name, probes, source in _PREFIXED:
        for probe in probes:
            if probe in long:
                break
        else:
            continue
        for match in _pattern(source).finditer(text):
            if not _placeholder(match.group().lower()):
                yield (*match.span(), name), True
    if "eyJ" in long:
        yield from _weighed("jwt", _JWT, text)
    if "@" in long and "://" in long:
        yield from _weighed("url-password", _URL, text)
    if "bearer" in lower or "basic" in lower:
        yield from _weighed("bearer", _BEARER, text)


def _weighed(name: str, source: str, text: str) -> Iterator[tuple[Span, bool]]:
    for match in _pattern(source).finditer(text):
        sure = _weigh(name, match.group("v"))
        if sure is not None:
            yield (*match.span("v"), name), sure


def _assignments(text: str, lower: str) -> Iterator[tuple[Span, bool]]:
    """The values that `password=…`, `api_key: …`, `--token …` or "the password is …" give."""
    if len(lower) != len(text):  # a few capitals, such as İ, grow when they are lower-cased
        lower = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    for start, secret, bound in _named(lower):
        value = _pattern(_VALUE).match(text, start)
        if value is not None:
            group = "bare" if value.group("quoted") is None else "quoted"
            if group == "bare" and text[value.end() : value.end() + 1] in ("(", "["):
                continue  # a call or an element
            sure = _weigh_assigned(value.group(group), secret, bound or group == "quoted")
            if sure is not None:
                yield (*value.span(group), "credential"), sure


def _named(lower: str) -> Iterator[tuple[int, bool, bool]]:
    """Where a value may begin, whether it is a password's, and whether it is surely one and no sentence going on."""
    for sign in "=:：":
        at = lower.find(sign)
        while at >= 0:
            if lower[at - 1] in _LAST:
                name = lower[max(0, at - 24) : at].rstrip(" \"'`*")
                if name.endswith(_PASSWORDS):
                    yield at + 1, True, sign == "="
                elif name.endswith(_KEYS):
                    yield at + 1, False, sign == "="
            at = lower.find(sign, at + 1)
    if "--" in lower:
        for option in _pattern(_OPTION).finditer(lower):
            yield option.end(), option.group("password") is not None, True
    if "pass" in lower or not lower.isascii():
        for said in _pattern(_SAID).finditer(lower):
            yield said.end(), True, False


def _weigh_block(text: str, match: re.Match[str]) -> bool | None:
    """Of a private key: True where key material follows the header or the header begins a line, None for a stand-in."""
    body = match.group("v").partition("-----END")[0].replace("\\n", " ")
    if any(mark in body.lower() for mark in _STAND_INS):
        return None
    return bool(body.strip()) or not text[: match.start()].rpartition("\n")[2].strip()


def _weigh(name: str, value: str) -> bool | None:
    """True: a secret. False: perhaps, good enough to redact. None: none."""
    if _placeholder(value.lower()):
        return None
    if name == "bearer":
        return True if _mixed(value) and not _wordy(value) else None
    if name == "basic-auth" and value.isdigit():
        return None
    if name == "url-password":
        port = value.partition("/")[0].partition("?")[0].partition("#")[0]
        if port != value and port.isdigit() and len(port) <= 5:
            return None
    return name == "jwt" or (len(value) > 2 and value.lower() not in _FEEBLE | _NOT_SAID)


def _weigh_assigned(value: str, secret: bool, bound: bool) -> bool | None:
    """As `_weigh`; `secret` and `bound` as in `_named`."""
    if _placeholder(value.lower()) or _reference(value):
        return None
    return _weigh_password(value, bound) if secret else _weigh_key(value, bound)


def _weigh_password(value: str, bound: bool) -> bool | None:
    plain = value.lower().rstrip(".!?")
    symbol = any(not c.isalnum() and c not in "-_.:/ " for c in value.rstrip(".!?"))
    if (_mixed(value) or symbol) and len(value) >= 6 and " " not in value:
        return None if _wordy(value) and not bound else True
    if not bound or plain in _NOT_SAID:
        return None
    return len(value) >= 8 and value.isalpha() and plain not in _FEEBLE


def _weigh_key(value: str, bound: bool) -> bool | None:
    if " " in value or not _mixed(value):
        long = len(value) >= 20 and value.isalnum() and value not in (value.lower(), value.upper())
        return True if long and bound else None
    if _wordy(value):
        return False if bound and len(value) >= 12 else None
    if len(value) >= 12:
        return True
    return False if len(value) >= 8 and bound else None


def _mixed(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _placeholder(value: str) -> bool:
    """True for a lower-cased stand-in: cut short, crossed out, named `your-…`, or a variable."""
    return (
        any(mark in value for mark in _STAND_INS)
        or value[0] in "<$%{["
        or not value.strip("x*.•_-")
        or value.startswith(("env:", "env.", "vault:", "op://", "ssm:", "file:"))
    )


def _wordy(value: str) -> bool:
    """Words joined by hyphens, dots or underscores (`my-secret-v2`), at most with a number in them."""
    parts = value.replace("_", "-").replace(".", "-").replace("/", "-").strip("-").split("-")
    return len(parts) > 1 and all(
        not part or (part.isdigit() and len(part) < 5) or (part.rstrip("0123456789").isalpha() and len(part) < 16)
        for part in parts
    )


def _reference(value: str) -> bool:
    """True where code or configuration names the secret instead of holding it."""
    if value.startswith(("/", "./", "../", "~")) or "://" in value or "(" in value or "[" in value:
        return True
    parts = value.split(".")
    joined = len(parts) > 1 or "_" in value
    return joined and all(part.isidentifier() for part in parts) and not any(c.isdigit() for c in value)
