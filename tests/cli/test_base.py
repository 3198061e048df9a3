"""config, trust, version and completion, as commands."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from khms import __version__
from khms.options import OPTIONS
from khms.store.layout import Base

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_config_list_shows_every_setting(base: Base, run_khms: Run) -> None:
    base.config.write_text("[recall]\nlimit = 9\n", encoding="utf-8")
    found = json.loads(run_khms("config", "list", "--json").stdout)
    assert found["schema"] == "khms.config/1"
    rows = {row["name"]: row for row in found["settings"]}
    assert list(rows) == [option.name for option in OPTIONS]
    assert rows["recall.limit"]["value"] == 9 and rows["recall.limit"]["origin"] == str(base.config)
    assert rows["recall.depth"]["origin"] == "default" and rows["recall.depth"]["meaning"]
    assert "recall.limit" in run_khms("config", "list").stdout


def test_config_works_outside_a_base(tmp_path: Path, run_khms: Run) -> None:
    assert run_khms("config", "get", "recall.limit", cwd=tmp_path).stdout == "5\n"
    done = run_khms("config", "set", "recall.limit", "7", "--user", cwd=tmp_path)
    assert done.returncode == 0
    assert run_khms("config", "get", "recall.limit", cwd=tmp_path).stdout == "7\n"
    assert run_khms("config", "set", "recall.limit", "7", cwd=tmp_path).returncode == 4


def test_config_set_keeps_comments_and_refuses_what_does_not_fit(base: Base, run_khms: Run) -> None:
    base.config.write_text("# mine\n[recall]\nlimit = 9  # nine\n", encoding="utf-8")
    assert run_khms("config", "set", "recall.limit", "4").returncode == 0
    assert run_khms("config", "set", "hooks.strong", "1").returncode == 0
    text = "# mine\n[recall]\nlimit = 4  # nine\n\n[hooks]\nstrong = 1.0\n"
    assert base.config.read_text(encoding="utf-8") == text
    for args in (
        ("recall.limit", "four"),
        ("recall.limit", "true"),
        ("recall.limits", "4"),
        ("base.default", "/x"),
        ("base.id", "x"),
    ):
        done = run_khms("config", "set", *args)
        assert done.returncode in (2, 3), done
    assert "did you mean recall.limit" in run_khms("config", "get", "recall.limits").stderr
    assert base.config.read_text(encoding="utf-8") == text


def test_config_names_a_broken_file(base: Base, run_khms: Run) -> None:
    base.config.write_text("[recall\n", encoding="utf-8")
    done = run_khms("config", "set", "recall.limit", "4")
    assert done.returncode == 3 and "khms.toml" in done.stderr and "line 1" in done.stderr
    assert base.config.read_text(encoding="utf-8") == "[recall\n"


def test_a_value_out_of_range_can_be_put_right_and_keeps_no_other_from_it(base: Base, run_khms: Run) -> None:
    base.config.write_text("[recall]\nlimit = 0  # too few\n\n[hooks]\nstrong = 7.0\n", encoding="utf-8")
    assert run_khms("config", "get", "recall.limit").returncode == 3
    done = run_khms("config", "set", "recall.limit", "4")
    assert done.returncode == 0 and "still wrong there: hooks.strong cannot be 7.0" in done.stderr
    done = run_khms("config", "set", "hooks.strong", "0.5")
    assert (done.returncode, done.stderr) == (0, "")
    assert base.config.read_text(encoding="utf-8") == "[recall]\nlimit = 4  # too few\n\n[hooks]\nstrong = 0.5\n"
    base.config.write_bytes(b"[recall]\nlimit = 4 \xff\n")
    assert run_khms("config", "set", "recall.limit", "5").returncode == 3
    assert base.config.read_bytes() == b"[recall]\nlimit = 4 \xff\n"


def test_trust_is_recorded_listed_and_taken_back(base: Base, run_khms: Run) -> None:
    assert run_khms("trust").returncode == 0
    bases = json.loads(run_khms("trust", "--list", "--json").stdout)["bases"]
    assert [entry["path"] for entry in bases] == [str(base.root)]
    assert str(base.root) in run_khms("trust", "--list").stdout
    assert "not trusted any more" in run_khms("trust", "--remove").stdout
    assert json.loads(run_khms("trust", "--list", "--json").stdout)["bases"] == []


def test_an_agent_cannot_trust_nor_loosen_settings(base: Base, run_khms: Run) -> None:
    agent = {"CLAUDECODE": "1"}
    assert run_khms("trust", env=agent).returncode == 3
    assert run_khms("config", "set", "review.allow_agents", "true", env=agent).returncode == 3
    assert run_khms("config", "set", "recall.limit", "4", env=agent).returncode == 0
    assert "allow_agents" not in base.config.read_text(encoding="utf-8")


def test_a_persons_own_change_keeps_the_trust(base: Base, run_khms: Run) -> None:
    run_khms("trust")
    assert run_khms("config", "set", "index.include", '{other = "../other"}').returncode == 0
    assert "hooks may use" in run_khms("doctor").stdout
    base.config.write_text("[index]\ninclude = {other = '/etc'}\n", encoding="utf-8")
    assert "need trust have changed" in run_khms("doctor").stdout


def test_version(run_khms: Run) -> None:
    assert run_khms("version").stdout == f"khms {__version__}\n" == run_khms("--version").stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(run_khms: Run, shell: str) -> None:
    done = run_khms("completion", shell)
    assert done.returncode == 0 and "_KHMS_COMPLETE" in done.stdout, done


def test_completion_answers(base: Base, run_khms: Run) -> None:
    env = {"_KHMS_COMPLETE": "bash_complete", "COMP_WORDS": "khms con", "COMP_CWORD": "1"}
    done = run_khms(env=env)
    assert (done.returncode, done.stdout) == (0, "plain,config\n"), done


def test_a_default_base_is_used_where_there_is_no_other(base: Base, tmp_path: Path, run_khms: Run) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert run_khms("status", cwd=elsewhere).returncode == 4
    run_khms("config", "set", "base.default", str(base.root), "--user", cwd=elsewhere)
    assert str(base.root) in run_khms("status", cwd=elsewhere).stdout
    assert run_khms("status", cwd=elsewhere, env={"KHMS_ROOT": str(elsewhere)}).returncode == 4


def test_a_value_may_look_like_an_option(base: Base, run_khms: Run) -> None:
    done = run_khms("config", "set", "recall.limit", "-1")
    assert done.returncode == 3 and "recall.limit" in done.stderr and "No such option" not in done.stderr
    assert run_khms("config", "set", "recall.limit", "4", "--usr").returncode == 2
    assert run_khms("config", "set", "recall.limit", "4", "--user").returncode == 0


def test_an_unknown_setting_is_a_wrong_call(base: Base, run_khms: Run) -> None:
    for words in (("get", "nope"), ("set", "nope", "1")):
        done = run_khms("config", *words)
        assert (done.returncode, done.stdout) == (2, "") and "khms config list" in done.stderr


def test_init_where_a_base_is_says_what_is_next(base: Base, run_khms: Run) -> None:
    assert "next: khms status" in run_khms("init").stdout
    done = run_khms("init", "sub")
    assert done.returncode == 3 and "khms status" in done.stderr


def test_help_names_the_exit_codes(run_khms: Run) -> None:
    shown = run_khms("--help").stdout
    assert all(f"\n  {code} " in shown for code in (0, 1, 2, 3, 4, 70, 75, 130)) and "Ctrl-C" in shown
