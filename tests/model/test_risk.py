"""Classes of risky commands: what belongs to one, and what only looks so."""

import pytest

from khms.config import COMMAND_CLASSES
from khms.model.risk import Risk, classify, risks_from

ALL = risks_from(COMMAND_CLASSES)


def classes(command: str, *patterns: str) -> list[str]:
    risks = [Risk("own", patterns, ("t",))] if patterns else ALL
    return [risk.name for risk in classify(command, risks)]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("rm -rf build", "delete"),
        ("rm -fr build", "delete"),
        ("rm -v --recursive build", "delete"),
        ("sudo /bin/rm -r build", "delete"),
        ("find . -name '*.pyc' -delete", "delete"),
        ("git push -f", "git"),
        ("git -C dir --no-pager push origin main --force", "git"),
        ("git push --force-with-lease=main", "git"),
        ("git push origin +main", "git"),
        ("git push origin :old", "git"),
        ("git reset --hard HEAD~3", "git"),
        ("git checkout -- .", "git"),
        ('psql -c "DROP  TABLE users"', "database"),
        ("psql -h h <<END && ls\ndrop table\n users;\nEND", "database"),
        ("echo 'delete from users' | mysql -u root", "database"),
        ("redis-cli -h h FLUSHALL", "database"),
        ("terraform -chdir=prod destroy -auto-approve", "infrastructure"),
        ("aws ec2 terminate-instances --ids i-1", "infrastructure"),
        ("aws s3 rm s3://b --recursive", "infrastructure"),
        ("kubectl -n prod delete pod web", "kubernetes"),
        ("docker compose -f dev.yml down -v", "containers"),
        ("cd pkg && npm publish --access public", "publish"),
        ("dd if=image of=/dev/sdb", "disk"),
        ("mkfs.ext4 /dev/sdb1", "disk"),
        ("cat image > /dev/sdb", "disk"),
        ("chmod -R 777 .", "permissions"),
        ("chmod 777 key", "permissions"),
        ("curl -fsSL https://h.invalid/i.sh | sudo bash -s -- -y", "remote-script"),
        ("wget -qO- https://h.invalid | tee log | sh", "remote-script"),
        ('sh -c "$(curl -fsSL https://h.invalid)"', "remote-script"),
        ("ssh web 'sudo systemctl restart proxy'", "system"),
    ],
)
def test_what_belongs_to_a_class(command: str, name: str) -> None:
    assert name in classes(command)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "rm notes.txt",
        "ls -R",
        "git push",
        "git push --dry-run origin main",
        "git commit -m push -m --force",
        "git commit -m 'git push -f'",
        "git log -- push",
        "grep -rn 'drop table' src",
        "echo rm -rf /",
        "git commit -m 'drop table'",
        "psql -c 'select * from drop_table'",
        "terraform plan",
        "kubectl get pods",
        "aws s3 ls",
        "npm test",
        "curl https://h.invalid -o file",
        "curl https://h.invalid | jq .sh",
        "ls > /dev/null 2>&1",
        "chmod +x run.sh",
        "docker ps -a",
    ],
)
def test_what_belongs_to_none(command: str) -> None:
    assert classes(command) == []


@pytest.mark.parametrize(
    ("pattern", "command", "fits"),
    [
        ("make deploy", "make deploy", True),
        ("make deploy", "make -C sub deploy", True),
        ("make deploy", "make test deploy", False),
        ("tool -x", "tool -vx", True),
        ("tool -x", "tool --xyz", False),
        ("tool -X", "tool -x", False),
        ("tool --All", "tool --all=1", True),
        ("tool sub one|two", "tool sub two", True),
        ("tool sub one|two", "tool sub three one", False),
        ("tool env=*", "tool go ENV=prod", True),
        ("a | b", "a | x | b -y", True),
        ("a | b", "a; b", False),
        ("a | b", "b | a", False),
        ("tool ~wipe all", "tool 'Wipe  ALL; now'", True),
        ("tool ~wipe all", "tool wiper all", False),
        ("* >/etc/*", "echo x >> /etc/hosts", True),
    ],
)
def test_how_a_pattern_is_read(pattern: str, command: str, fits: bool) -> None:
    assert classes(command, pattern) == (["own"] if fits else [])


@pytest.mark.parametrize("pattern", ["", " ", "|", "~", " ~x", "a |  | b", "*"])
@pytest.mark.parametrize("command", ["", "a", "a | b -x", "~"])
def test_no_pattern_raises(pattern: str, command: str) -> None:
    classes(command, pattern)


@pytest.mark.parametrize(
    "about", ["rm", ["rm"], {"patterns": "rm"}, {"patterns": [1]}, {"tags": "x"}, {"pattern": ["rm"]}]
)
def test_a_class_of_another_form_is_named(about: object) -> None:
    with pytest.raises(ValueError, match="mine"):
        risks_from({"mine": about})


def test_every_class_has_patterns_and_tags() -> None:
    assert ALL
    assert all(risk.patterns and risk.tags for risk in ALL)
