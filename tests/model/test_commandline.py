"""A command line taken apart: every way of wrapping a command shows what runs in the end, and no text does harm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from khms.model.commandline import DEEPEST, MOST_COMMANDS, meant, pipelines

RUN = ("rm", "-rf", "x")


def programs(text: str) -> list[tuple[str, ...]]:
    """The words of every command that is meant anywhere in `text`, its program without its folder."""
    return [(one.program, *one.words[1:]) for line in pipelines(text) for stage in line for one in meant(stage)]


@pytest.mark.parametrize(
    "text",
    [
        "rm -rf x",
        "/bin/rm -rf x",
        r"\rm -rf x",
        "'rm' -rf \"x\"",
        "rm -rf \\\n  x",
        "A=1 B='2 3' rm -rf x",
        "sudo rm -rf x",
        "sudo -u ada -E rm -rf x",
        "sudo env A=1 nohup nice -n 5 rm -rf x",
        "timeout -k 5 10 rm -rf x",
        "cd /tmp && rm -rf x",
        "true || rm -rf x; ls",
        "ls\nrm -rf x\n",
        "sleep 1 & rm -rf x",
        "(cd a; rm -rf x)",
        "echo $(rm -rf x)",
        'echo "text $(rm -rf x) text"',
        'echo "a `rm -rf x` b"',
        "diff <(rm -rf x) y",
        "if true; then rm -rf x; fi",
        "for f in *; do rm -rf x; done",
        "clean() { rm -rf x; }",
        'bash -c "rm -rf x"',
        "bash -lc 'cd y && rm -rf x'",
        "sh -c 'bash -c \"rm -rf x\"'",
        'eval "rm -rf x"',
        "bash <<< 'rm -rf x'",
        "bash <<END\nrm -rf x\nEND\n",
        "cat <<-'END' | sudo sh\n\trm -rf x\n\tEND\n",
        'echo "rm -rf x" | sh',
        "ssh host rm -rf x",
        "ssh -p 22 host 'cd y; rm -rf x'",
        "docker exec -it box rm -rf x",
        "kubectl exec pod -- sh -c 'rm -rf x'",
        "ls | xargs -0 rm -rf x",
        "echo 'never closed $(' && rm -rf x",
        'echo "never closed $(rm -rf x',
        "$(which rm) -rf x",
        "`command -v rm` -rf x",
        "uv run rm -rf x",
    ],
)
def test_what_runs_in_the_end(text: str) -> None:
    assert RUN in programs(text)


@pytest.mark.parametrize(
    "text",
    [
        "echo rm -rf x",
        "git commit -m 'rm -rf x'",
        "# rm -rf x",
        "ls # rm -rf x",
        "echo '$(rm -rf x)'",
        r"echo \$\(rm -rf x\)",
        "cat > notes <<END\nrm -rf x\nEND\n",
        "grep -r 'rm -rf x' .",
        "echo $(date) rm -rf x",
        "python script.py rm -rf x",
        "echo $(which rm) -rf x",
    ],
)
def test_what_is_only_said(text: str) -> None:
    assert RUN not in programs(text)


def test_find_runs_what_follows_exec() -> None:
    assert ("rm", "-rf", "{}", ";") in programs(r"find . -name y -exec rm -rf {} \;")


def test_stages_of_one_pipeline() -> None:
    (line,) = pipelines("curl -s https://h.invalid | tee log |& sh 2> err >> out")
    assert [stage.words for stage in line] == [
        ("curl", "-s", "https://h.invalid"),
        ("tee", "log"),
        ("sh", ">err", ">out"),
    ]


def test_what_a_shell_gets_by_substitution_is_one_pipeline_with_it() -> None:
    for text in ('sudo bash -c "$(curl -s u)"', "bash <(curl -s u)", "source <(curl -s u)", 'eval "$(curl -s u)"'):
        assert any(line[0].words == ("curl", "-s", "u") and len(line) == 2 for line in pipelines(text)), text
    for text in ('echo "$(curl -s u)"', 'sh run.sh "$(curl -s u)"', "python read.py <(curl -s u)"):
        assert all(len(line) == 1 for line in pipelines(text)), text


def test_a_redirection_before_the_program_is_one_behind_it() -> None:
    for text, words in (
        (">log 2>&1 rm -rf x", (*RUN, ">log", ">1")),
        ("<list sudo rm -rf x", ("sudo", *RUN, "<list")),
        ("> /etc/hosts", (":", ">/etc/hosts")),
    ):
        assert [[stage.words for stage in line] for line in pipelines(text)] == [[words]]


def test_a_here_document_belongs_to_its_command() -> None:
    first, second, third = pipelines("psql <<END && echo done\nDROP TABLE x;\nEND\nls\n")
    assert (first[0].stdin, second[0].stdin, third[0].words) == ("DROP TABLE x;\n", "", ("ls",))
    (both,) = pipelines("a <<X b <<Y\none\nX\ntwo\nY\n")
    assert both[0].stdin == "one\ntwo\n"


def test_scripts_in_scripts_end() -> None:
    assert RUN in programs("eval " * DEEPEST + "rm -rf x")
    assert len(pipelines("eval " * 60 + "rm -rf x")) == DEEPEST + 1


HOSTILE = {
    name: (text * (10_000 // len(text) + 1))[:10_000]
    for name, text in {
        "substitutions": "$(",
        "quoted ones": '"$(',
        "backticks": "`",
        "here-documents": "<<A ",
        "here-documents without an end": "a <<A\n",
        "wrappers": "sudo -a ",
        "shells": 'bash -c "',
        "ssh": "ssh ",
        "carriers": "sudo docker exec ",
        "exec": "find -exec rm ",
        "pipes": "echo a|",
        "commands": "a;",
        "quotes": "'",
        "backslashes": "\\",
        "streams": "<(",
    }.items()
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_bounded(name: str) -> None:
    found = pipelines(HOSTILE[name])
    assert len(found) <= MOST_COMMANDS
    assert sum(1 for line in found for stage in line for _ in meant(stage)) <= 4 * MOST_COMMANDS


@given(st.text(alphabet="ab '\"`$()<>|&;\\\n#-={}", max_size=80) | st.text(max_size=80))
def test_no_text_raises(text: str) -> None:
    for line in pipelines(text):
        assert line
        for stage in line:
            assert stage.words
            assert list(meant(stage))
