"""An endpoint over real HTTP on loopback, right and wrong in every way."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from khms.config import Config
from khms.errors import Refused, Unavailable
from khms.hosts import headless
from khms.hosts.headless import openai
from khms.hosts.headless.base import Reply, Request

SCHEMA = {
    "type": "object",
    "required": ["answer"],
    "properties": {"answer": {"type": "string"}, "why": {"type": "string"}},
}
Step = Callable[[BaseHTTPRequestHandler], None]


def completion(content: Any = '{"answer": "ja", "why": null}', reason: str = "stop", **message: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": reason}
    return {"model": "tiny-1", "choices": [choice], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}


def send(status: int, body: Any, **headers: str) -> Step:
    """An answer with this status; a text or a document as its body, `retry_after=…` for a header of its own."""

    def step(handler: BaseHTTPRequestHandler) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(data)

    return step


def error(status: int, message: str, code: str = "", **headers: str) -> Step:
    return send(status, {"error": {"message": message, "code": code or None, "type": "x"}}, **headers)


@dataclass
class Endpoint:
    """Answers one step a request, the last one again; keeps what it was asked."""

    steps: list[Step] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def ask(self, *steps: Step, seconds: float = 60, schema: Any = SCHEMA, most: int = 1 << 20) -> Reply:
        self.steps[:] = steps
        self.requests.clear()
        self.headers.clear()
        values = {"proposer": "openai", "openai_url": self.url, "model": "tiny", "max_answer_bytes": most}
        agent = headless.agent(Config([("khms.toml", {f"nightly.{name}": value for name, value in values.items()})]))
        return agent.ask(Request("Be brief.", "[khms-run X]\nwas heißt 測試?", schema, seconds, "X"))


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    found = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found.requests.append({"path": self.path, **asked})
            found.headers.append(dict(self.headers))
            step = found.steps.pop(0) if len(found.steps) > 1 else found.steps[0]
            try:
                step(self)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        do_GET = do_POST

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # loopback is never asked through one
    monkeypatch.setattr(openai, "WAITS", (0.01, 0.01))
    monkeypatch.setattr(openai, "_formless", set())
    yield found
    found.done.set()
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_right_answer(endpoint: Endpoint) -> None:
    reply = endpoint.ask(send(200, completion()))
    assert reply == Reply("answer", '{"answer": "ja"}', tokens=(11, 7), model="tiny-1")
    (asked,), (headers,) = endpoint.requests, endpoint.headers
    assert asked["path"] == "/v1/chat/completions" and headers["Authorization"] == "Bearer sk-test"
    assert asked["model"] == "tiny" and asked["stream"] is False
    assert asked["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "[khms-run X]\nwas heißt 測試?"},
    ]
    form = asked["response_format"]["json_schema"]
    assert form["strict"] is True and form["schema"]["required"] == ["answer", "why"]
    assert (
        endpoint.ask(send(200, completion([{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]))).text
        == "in parts"
    )
    endpoint.ask(send(200, completion("free")), schema=None)
    assert "response_format" not in endpoint.requests[0]


def test_a_limit_is_waited_for_where_there_is_time(endpoint: Endpoint) -> None:
    reply = endpoint.ask(error(429, "slow down", retry_after="0.01"), send(200, completion()))
    assert reply.kind == "answer" and len(endpoint.requests) == 2
    reply = endpoint.ask(error(429, "slow down", retry_after="3600"), seconds=30)
    assert (reply.kind, len(endpoint.requests)) == ("limit", 1) and "slow down" in reply.text
    assert datetime.fromisoformat(reply.resets).timestamp() > time.time() + 3000
    reply = endpoint.ask(error(429, "slow down", retry_after=formatdate(4102444800, usegmt=True)))
    assert reply.kind == "limit" and datetime.fromisoformat(reply.resets).timestamp() == 4102444800
    reply = endpoint.ask(error(429, "You exceeded your current quota", "insufficient_quota"))
    assert (reply.kind, len(endpoint.requests)) == ("limit", 1)
    assert endpoint.ask(error(429, "slow down", retry_after="0")).kind == "limit"
    assert len(endpoint.requests) == 3


def test_an_endpoint_that_refuses_a_form_is_asked_without_one_and_not_again(endpoint: Endpoint) -> None:
    refuses = error(400, "'response_format' of type 'json_schema' is not supported")
    reply = endpoint.ask(refuses, send(200, completion('{"answer": "ja", "why": null}')))
    assert reply.text == '{"answer": "ja", "why": null}'  # it was held to no form, so nothing of it is taken away
    assert ["response_format" in asked for asked in endpoint.requests] == [True, False]
    endpoint.ask(send(200, completion()))
    assert ["response_format" in asked for asked in endpoint.requests] == [False]
    assert endpoint.ask(error(400, "no such model")).kind == "failed"


def test_an_endpoint_that_stumbles_is_asked_again(endpoint: Endpoint) -> None:
    drop: Step = lambda handler: handler.connection.close()  # noqa: E731
    for stumbles in (error(500, "oops"), error(503, "busy"), drop):
        assert endpoint.ask(stumbles, send(200, completion())).kind == "answer"
        assert len(endpoint.requests) == 2
    reply = endpoint.ask(error(500, "oops"))
    assert (reply.kind, len(endpoint.requests)) == ("failed", 3) and "oops" in reply.text


def test_one_that_is_slow_is_given_up_even_if_it_never_stops_talking(endpoint: Endpoint) -> None:
    def silent(handler: BaseHTTPRequestHandler) -> None:
        endpoint.done.wait()

    def drips(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not endpoint.done.wait(0.02):
            handler.wfile.write(b" ")
            handler.wfile.flush()

    for slow in (silent, drips):
        reply = endpoint.ask(slow, seconds=0.5)
        assert reply.kind == "timeout"


def test_a_huge_body_is_not_read_to_its_end(endpoint: Endpoint) -> None:
    sent = []

    def huge(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        for _ in range(2000):
            handler.wfile.write(b"x" * 65536)
            sent.append(65536)

    assert endpoint.ask(huge, most=100_000).kind == "oversize"
    assert sum(sent) < 2000 * 65536


@pytest.mark.parametrize(
    "step, kind, words",
    [
        (send(200, "<html>welcome</html>"), "failed", "welcome"),
        (send(200, "[" * 5000), "failed", "no completion"),
        (send(200, {"choices": []}), "failed", "no completion"),
        (send(200, completion("")), "failed", "no answer"),
        (send(200, completion(None)), "failed", "no answer"),
        (send(200, completion('{"answer": "j', "length")), "failed", "cut off"),
        (send(200, completion(None, refusal="I will not do that.")), "refusal", "I will not"),
        (send(200, completion("", "content_filter")), "refusal", "content filter"),
        (send(200, completion("I'm sorry, but I can't help with that.")), "refusal", "sorry"),
        (send(200, completion(None, tool_calls=[{"function": {"name": "x"}}])), "tools", "tool"),
        (error(401, "Incorrect API key provided", "invalid_api_key"), "failed", "key is not accepted"),
        (error(400, "bad header: Bearer sk-test"), "failed", "Bearer [key]"),
        (error(400, "too much", "context_length_exceeded"), "too-long", "too much"),
        (error(400, "the request exceeds the available context size (4096 tokens)"), "too-long", "4096"),
        (error(413, "large"), "too-long", "large"),
        (error(400, "declined", "content_policy_violation"), "refusal", "declined"),
        (error(402, "pay first"), "limit", "pay"),
        (send(404, {"error": "model 'tiny' not found, try pulling it first"}), "failed", "try pulling"),
        (send(404, "page not found"), "failed", "page not found"),
    ],
)
def test_every_other_answer_has_its_kind(endpoint: Endpoint, step: Step, kind: str, words: str) -> None:
    reply = endpoint.ask(step)
    assert reply.kind == kind and words in reply.text
    assert "sk-test" not in repr(reply)


def test_no_redirect_gets_the_key_or_the_text(endpoint: Endpoint) -> None:
    for status in (301, 302, 307, 308):
        reply = endpoint.ask(send(status, "", location=f"{endpoint.url}/elsewhere"), send(200, completion()))
        assert reply.kind == "failed" and "elsewhere" in reply.text
        assert [asked["path"] for asked in endpoint.requests] == ["/v1/chat/completions"]


def test_where_nothing_listens_it_says_so(endpoint: Endpoint) -> None:
    agent = openai.OpenAI("http://127.0.0.1:9/v1", "", "tiny", 1024)
    reply = agent.ask(Request("", "text", None, 30, "X"))
    assert reply.kind == "failed" and "127.0.0.1:9/v1 cannot be reached" in reply.text


def made(**values: Any) -> headless.base.Agent:
    settings = {"proposer": "openai", "model": "tiny", **values}
    return headless.agent(Config([("khms.toml", {f"nightly.{name}": value for name, value in settings.items()})]))


def test_it_is_not_made_without_address_model_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for url in ("", "127.0.0.1:8080", "file:///etc/passwd", "https://"):
        with pytest.raises(Refused, match="no web address"):
            made(openai_url=url)
    with pytest.raises(Refused, match="needs a model"):
        made(openai_url="https://example.org/v1", model="")
    with pytest.raises(Unavailable, match="OPENAI_API_KEY holds no key") as caught:
        made(openai_url="https://example.org/v1")
    assert "export OPENAI_API_KEY" in caught.value.hint
    for url in ("http://127.0.0.1:1/v1", "http://localhost:1/v1", "http://[::1]:1/v1"):
        assert made(openai_url=url).model == "tiny"  # one on this machine rarely has keys
    assert made(openai_url="http://192.0.2.7/v1", openai_key_env="").name == "openai"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with pytest.raises(Refused, match="in the clear"):
        made(openai_url="http://192.0.2.7/v1")
    monkeypatch.setenv("OTHER_KEY", "schlüssel")
    with pytest.raises(Refused, match="OTHER_KEY holds is no key"):
        made(openai_url="https://example.org/v1", openai_key_env="OTHER_KEY")
