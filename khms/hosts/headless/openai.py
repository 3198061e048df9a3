"""Any endpoint that speaks OpenAI's chat completions, local or not. It is given text and gives text back; there are no
tools, no session and no memory but what its operator keeps."""

import asyncio
import json
import os
import time
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from khms.config import Config
from khms.errors import Refused, Unavailable
from khms.hosts.headless import forms
from khms.hosts.headless.base import (
    FAILED,
    LIMIT,
    OVERSIZE,
    REFUSAL,
    TIMEOUT,
    TOO_LONG,
    TOOLS,
    Enforces,
    Reply,
    Request,
)
from khms.hosts.headless.program import answered, clock, meaning, number, tail

if TYPE_CHECKING:
    import httpx

ENFORCES = Enforces(
    tools="yes",
    session="yes, on this side",
    hooks="yes",
    system="yes",
    schema="yes, where the endpoint takes one",
    memory="yes",
)
TRIES = 3  # requests for one answer, waits between them included in its time
WAITS = (0.5, 2.0)  # seconds, where the endpoint names none
AGAIN = (408, 409, 500, 502, 503, 504, 529)
# Codes and messages that endpoints give in the body of an error; those of OpenAI's own interface first, then the words
# of llama.cpp, vLLM, Ollama and gateways that speak for other vendors.
SIGNS = (
    (TOO_LONG, r"context_length_exceeded|maximum context length|exceeds? the (?:available|model['’]s) context"),
    (TOO_LONG, r"prompt is too long|input length .{0,60}exceeds?|too many (?:input )?tokens"),
    (REFUSAL, r"content_policy_violation|content_filter|ResponsibleAIPolicyViolation"),
    (LIMIT, r"insufficient_quota|rate_limit_exceeded|exceeded your current quota|quota exceeded|billing_hard_limit"),
    (LIMIT, r"insufficient credits?|credit balance is too low"),
)
_formless: set[tuple[str, str]] = set()  # endpoint and model that refused a form: they are not asked for one again


class _Failure(Exception):
    """A reply that ends the call."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.text)
        self.reply = reply


@dataclass(frozen=True, slots=True)
class OpenAI:
    url: str
    key: str
    model: str
    most: int
    name: str = "openai"
    enforces: Enforces = ENFORCES

    def ask(self, request: Request) -> Reply:
        try:
            reply = asyncio.run(self._within(request))
        except _Failure as failure:
            reply = failure.reply
        # An endpoint that echoes what it was sent must not get the key into our records.
        return replace(reply, text=reply.text.replace(self.key, "[key]")) if self.key else reply

    async def _within(self, request: Request) -> Reply:
        import httpx

        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}  # what is read is what is counted
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        until = time.monotonic() + request.seconds
        try:
            async with (
                asyncio.timeout(request.seconds),
                # No redirect is followed: the key and the text are for this address only.
                httpx.AsyncClient(
                    headers=headers, timeout=None, follow_redirects=False, trust_env=not _here(self.url)
                ) as client,
            ):
                return await self._answer(client, request, until)
        except TimeoutError:
            return Reply(TIMEOUT, f"no answer within {request.seconds:.0f} seconds")

    async def _answer(self, client: "httpx.AsyncClient", request: Request, until: float) -> Reply:
        import httpx

        form = request.schema is not None and (self.url, self.model) not in _formless
        left = TRIES
        while True:
            left -= 1
            try:
                status, head, body = await self._post(client, request, form)
            except httpx.HTTPError as error:
                if not left:
                    return Reply(FAILED, f"{self.url} cannot be reached: {error or type(error).__name__}")
                await asyncio.sleep(WAITS[TRIES - 1 - left])
                continue
            if status == 200:
                return _read(body, form)
            if form and status in (400, 422) and _refuses_form(body):
                _formless.add((self.url, self.model))
                form, left = False, left + 1
                continue
            wait = _wait(head.get("retry-after", ""))
            if left and status in (429, *AGAIN) and (status != 429 or wait is not None):
                seconds = WAITS[TRIES - 1 - left] if wait is None else wait
                if time.monotonic() + seconds < until:
                    await asyncio.sleep(seconds)
                    continue
            return _error(status, head, body, self.url)

    async def _post(
        self, client: "httpx.AsyncClient", request: Request, form: bool
    ) -> "tuple[int, httpx.Headers, bytes]":
        """One exchange: status, headers and body; raises _Failure where the body is over the limit."""
        messages = [{"role": "system", "content": request.system}] if request.system else []
        text = request.text.encode("utf-8", "replace").decode()
        asked: dict[str, Any] = {
            "model": self.model,
            "messages": [*messages, {"role": "user", "content": text}],
            "stream": False,
        }
        if form and request.schema is not None:
            named = {"name": "answer", "strict": True, "schema": forms.strict(request.schema)}
            asked["response_format"] = {"type": "json_schema", "json_schema": named}
        body = bytearray()
        async with client.stream("POST", f"{self.url}/chat/completions", json=asked) as response:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > self.most:
                    raise _Failure(Reply(OVERSIZE, f"more than {self.most} bytes"))
        return response.status_code, response.headers, bytes(body)


def _read(body: bytes, form: bool) -> Reply:
    """The reply that a completion amounts to."""
    document = _document(body)
    choices = document.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = choice.get("message")
    if not isinstance(message, dict):
        return Reply(FAILED, f"what came is no completion: {_shown(body)}")
    usage = document.get("usage") if isinstance(document.get("usage"), dict) else {}
    tokens = (number(usage.get("prompt_tokens")), number(usage.get("completion_tokens"))) if usage else (0, 0)
    model = str(document.get("model") or "")
    if message.get("tool_calls") or message.get("function_call"):
        return Reply(TOOLS, "it called a tool", tokens=tokens, model=model)
    text = _text(message.get("content"))
    if message.get("refusal"):
        return Reply(REFUSAL, tail(str(message["refusal"])), tokens=tokens, model=model)
    reason = choice.get("finish_reason")
    if reason == "content_filter":
        return Reply(REFUSAL, tail(text) or "its content filter stopped it", tokens=tokens, model=model)
    if reason == "length":
        return Reply(FAILED, f"the answer is cut off:\n{tail(text)}", tokens=tokens, model=model)
    return answered(forms.without_nulls(text) if form else text, tokens=tokens, model=model)


def _error(status: int, head: "httpx.Headers", body: bytes, url: str) -> Reply:
    """The reply that an answer of this status amounts to."""
    if 300 <= status < 400:
        where = head.get("location", "")
        return Reply(FAILED, f"{url} sends on to {where}, which is not followed: set nightly.openai_url to it if right")
    error = _document(body).get("error")
    said = error if isinstance(error, dict) else {"message": error if isinstance(error, str) else _shown(body)}
    words = " ".join(str(said[key]) for key in ("message", "code", "type") if said.get(key)) or f"status {status}"
    kind, _ = meaning(words, SIGNS)
    if status in (401, 403):
        words = f"the key is not accepted: {words}"
    if status == 429 or (status == 402 and not kind):
        kind = LIMIT
    if status == 413 and not kind:
        kind = TOO_LONG
    wait = _wait(head.get("retry-after", "")) if kind == LIMIT else None
    resets = "" if wait is None else clock(time.time() + wait)
    return Reply(kind or FAILED, tail(words), said=f"status {status}", resets=resets)


def _refuses_form(body: bytes) -> bool:
    words = body.decode("utf-8", "replace")
    return any(name in words for name in ("response_format", "json_schema", "structured output", "schema"))


def _document(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(content: object) -> str:
    """The words of a message; some endpoints give them in parts."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict) and part.get("type") in ("text", "output_text")]
        return "".join(str(part.get("text", "")) for part in parts)
    return content if isinstance(content, str) else ""


def _shown(body: bytes) -> str:
    return " ".join(body[:400].decode("utf-8", "replace").split())


def _wait(said: str) -> float | None:
    """The seconds that `retry-after` names, as a number or a date; None where it names none."""
    try:
        return max(float(said), 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(said).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError):
        return None


def _here(url: str) -> bool:
    """Whether an address is this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def agent(config: Config) -> OpenAI:
    url = str(config["nightly.openai_url"]).rstrip("/")
    where = config.origin("nightly.openai_url")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        hint = "khms config set nightly.openai_url https://HOST/v1"
        raise Refused(f"nightly.openai_url is no web address: {url!r}", where=where, hint=hint)
    if not config["nightly.model"]:
        hint = "khms config set nightly.model NAME"
        raise Refused("the proposer openai needs a model", where=config.origin("nightly.model"), hint=hint)
    name = config["nightly.openai_key_env"]
    key = os.environ.get(name, "").strip() if name else ""
    if not (key.isascii() and key.isprintable()):
        raise Refused(f"what {name} holds is no key", where=url, hint="set it to the key alone")
    if name and not key and not _here(url):
        hint = f"export {name}=…, or khms config set nightly.openai_key_env '' for an endpoint without keys"
        raise Unavailable(f"the environment variable {name} holds no key", where=url, hint=hint)
    if key and urlsplit(url).scheme == "http" and not _here(url):
        hint = "use https, or khms config set nightly.openai_key_env '' for an endpoint without keys"
        raise Refused("the key would cross the network in the clear", where=url, hint=hint)
    if find_spec("httpx") is None:
        raise Unavailable("httpx is not installed", hint="pip install 'khms[openai]'")
    return OpenAI(url, key, config["nightly.model"], config["nightly.max_answer_bytes"])
