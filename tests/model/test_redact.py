"""Known key shapes are taken out, stand-ins stay. Every secret here is put together when the test runs."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from khms.model.redact import key_shapes, known_prefix, redact

MIXED = "aB3dE5fG7hJ9" + "kL1mN3pQ5rS7" + "tU9vW1xY3z"
HEX = "0123456789abcdef"


def built(*parts: str) -> str:
    """A secret joined from pieces, so that no scanner finds it in this file."""
    return "".join(parts)


PEM = built("-----BEGIN RSA ", "PRIVATE KEY-----")
PEM_END = built("-----END RSA ", "PRIVATE KEY-----")
TOKENS = [
    ("aws-key", built("AK", "IA", "Q3EGRTY7XPLM2WVN")),
    ("github-token", built("gh", "p_", MIXED, "aB")),
    ("github-token", built("github", "_pat_", MIXED)),
    ("gitlab-token", built("gl", "pat-", MIXED[:20])),
    ("anthropic-key", built("sk", "-ant-", "api03-", MIXED)),
    ("openai-key", built("sk", "-proj-", MIXED)),
    ("openai-key", built("sk", "-", HEX, HEX)),
    ("openai-key", built("sk", "-test-", "1234567890abcdef")),
    ("slack-token", built("xo", "xb-", "1234567890-abcdefABCDEF")),
    ("slack-webhook", built("hooks.slack", ".com/services/", "T0001/B0001/", MIXED[:20])),
    ("stripe-key", built("sk", "_live_", MIXED)),
    ("google-key", built("AI", "za", MIXED, "x")),
    ("google-secret", built("GOC", "SPX-", MIXED)),
    ("npm-token", built("np", "m_", MIXED, "aB")),
    ("pypi-token", built("py", "pi-", MIXED, MIXED)),
    ("huggingface-token", built("h", "f_", MIXED)),
    ("sendgrid-key", built("S", "G.", MIXED[:22], ".", MIXED)),
    ("twilio-key", built("S", "K", HEX, HEX)),
    ("telegram-token", built("123456789", ":A", "A", MIXED[:33])),
    ("digitalocean-token", built("do", "p_v1_", HEX * 4)),
    ("databricks-token", built("da", "pi", HEX, HEX)),
    ("vault-token", built("hv", "s.", MIXED)),
    ("mailchimp-key", built(HEX, HEX, "-us", "12")),
    ("private-key", built(PEM, "\nMIIEowIBAAKCAQEA7bq\nabcdefghijklmnop\n", PEM_END)),
    ("private-key", built(PEM, "\\nMIIEowIBAAKCAQEA7bq\\n", PEM_END)),
    ("private-key", PEM),
]
# (name, text before, the secret, text after)
SITUATED = [
    ("jwt", "jwt ", built("ey", "JhbGciOiJIUzI1NiJ9.", "ey", "JzdWIiOiIxMjM0NTY3ODkwIn0.", MIXED), ""),
    ("url-password", "postgres://svc:", "S3cr3tPw", "@db.example/app"),
    ("url-password", "redis://:", "abc/def1", "@cache:6379"),
    ("url-password", "amqp://u:", "p@ss", "@mq/vhost"),
    ("bearer", "Authorization: Bearer ", MIXED, ""),
    ("basic-auth", "curl -u admin:", "s3cret99", " https://x.example"),
    ("credential", "password=", "hunter2", ""),
    ("credential", "PGPASSWORD=", "swordfish1", " psql"),
    ("credential", "api_key: ", "9f8e7d6c5b4a39281706", ""),
    ("credential", '"apiKey": "', "Zx81kQ0pLm22", '"'),
    ("credential", "aws_secret_access_key = ", MIXED + "/+aB3d", ""),
    ("credential", "deploy --db-password ", "hunter2", " --wait"),
    ("credential", "Passwort: ", "Geheim123", ""),
    ("credential", "mot de passe : ", "Secret99!", ""),
    ("credential", "пароль: ", "Секрет123", ""),
    ("credential", "密码：", "abc12345", "。"),
    ("credential", "the password is ", "hunter2!", ""),
]


@pytest.mark.parametrize(("name", "token"), TOKENS)
def test_a_token_is_replaced_by_the_name_of_its_shape(name: str, token: str) -> None:
    text = f"2026-03-04 the key {token} was pasted" if "\n" not in token and token != PEM else f"key:\n{token}\n"
    redacted = redact(text)
    assert f"[redacted:{name}]" in redacted
    assert token not in redacted
    assert [shape for _, _, shape in key_shapes(text)] == [name]
    assert known_prefix(name)


@pytest.mark.parametrize(("name", "before", "secret", "after"), SITUATED)
def test_a_value_in_its_place_goes_and_the_rest_stays(name: str, before: str, secret: str, after: str) -> None:
    text = before + secret + after
    assert key_shapes(text) == [(len(before), len(before) + len(secret), name)]
    assert redact(text) == f"{before}[redacted:{name}]{after}"
    assert not known_prefix(name)


@pytest.mark.parametrize(
    "text",
    [
        "sk-... or sk-… is where your key goes",
        "api_key=<your-key>, token=$TOKEN, secret=${SECRET}, password={{ vault_pw }}",
        built("gh", "p_") + "x" * 36,
        "AKIA" + "X" * 16,
        "password: must be rotated every 90 days",
        "password is required; password is 12 characters long; password is sha256-hashed",
        "password=os.environ['X'] or password=getpass() or password=settings.DB_PASSWORD",
        "secret: my-secret-v2",
        "token: GITHUB_TOKEN, max_tokens: 4096, token_count=1200",
        "Authorization: Bearer $TOKEN and Bearer <token>",
        "http://localhost:3000/@user/x and http://[::1]:8080/x@y and git@github.com:owner/repo.git",
        "docker run -u 1000:1000 image",
        "the parser looks for `" + PEM + "`",
        built(PEM, "\n...\n", PEM_END),
        "task-1234567890abcdef1234 and sk-learn-pipelines-are-nice",
        "commit 4f1d2c9e8b7a6d5c4b3a29180716253443526170",
        "primary key: id_2024_long",
    ],
)
def test_stand_ins_references_and_prose_stay(text: str) -> None:
    assert redact(text) == text
    assert key_shapes(text) == []


@pytest.mark.parametrize("text", [built("postgres://u:", "p", "@h"), built("postgres://user:", "pass", "@host/db")])
def test_what_is_doubtful_is_redacted_and_stops_nothing(text: str) -> None:
    assert "[redacted:url-password]" in redact(text)
    assert key_shapes(text) == []
    assert key_shapes(text, doubtful=True) != []


def test_overlapping_shapes_are_one_under_the_name_with_a_form_of_its_own() -> None:
    token = built("gh", "p_", MIXED, "aB")
    assert redact(f"token={token}") == "token=[redacted:github-token]"


def test_two_secrets_of_one_line() -> None:
    text = f"{TOKENS[0][1]} and {TOKENS[1][1]}"
    assert redact(text) == "[redacted:aws-key] and [redacted:github-token]"


PIECES = st.sampled_from(
    ["password=", "token: ", "://a:", "@", "sk-", "ghp_", PEM, PEM_END, "\n", " ", "'", '"', "`", "=", ":", "--token "]
    + [secret for _, secret in TOKENS]
    + [secret for _, _, secret, _ in SITUATED]
    + ["[redacted:jwt]", "İ", "\ud800", "ß"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES | st.text(max_size=12), max_size=12).map("".join))
def test_never_raises_and_doing_it_again_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once) == once
    spans = key_shapes(text, doubtful=True)
    assert all(0 <= start < end <= len(text) for start, end, _ in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


@pytest.mark.parametrize("piece", ["a", "eyJ", "sk-", "ghp_", "xoxb-", PEM, "://a:", "password=", 'key: "', "curl -u "])
def test_a_long_hostile_text_ends(piece: str) -> None:
    redact(piece * (200_000 // len(piece)))


def test_a_harmless_text_does_not_even_import_re() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from khms.model.redact import redact;"
        "redact('the pump ran for nine hours'); print('re' in sys.modules)"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program, root], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
