"""Every setting of khms in one typed table that documents itself: `config` reads files into it.

A figure that someone might want to change is a row here, with its meaning and, where it must lie between two bounds,
these.
"""

from __future__ import annotations

from khms.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Value = Any  # str, int, float, bool, list of str, or a table
else:
    Value = object


@dataclass(frozen=True, slots=True)
class Option:
    """One setting. `needs_trust`: it can name a program, an address, a model or an outside path. A figure lies between
    `least` and `most`, both taken in; a text with `choices` is one of them."""

    name: str
    default: Value
    meaning: str
    needs_trust: bool = False
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def range(self) -> str:
        """What values there are, in words; empty where any will do."""
        if self.choices:
            return "one of: " + ", ".join(self.choices)
        if self.least is None:
            return ""
        return f"at least {self.least}" if self.most is None else f"from {self.least} to {self.most}"

    def takes(self, value: Value) -> bool:
        """Whether a value of the right type is within the range."""
        if self.choices:
            return value in self.choices
        low = self.least is None or value >= self.least  # a comparison with NaN is false
        return low and (self.most is None or value <= self.most)


LANGUAGES = (
    *("arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hungarian", "italian"),
    *("norwegian", "portuguese", "romanian", "russian", "spanish", "swedish", "tamil", "turkish"),
)  # those that the index has a stemmer for

# Classes of shell commands that are worth a look before they run: how to tell them (khms.model.risk says how a pattern
# is read) and the tags under which a base keeps what it knows of them.
COMMAND_CLASSES: dict[str, dict[str, list[str]]] = {
    "delete": {
        "patterns": [
            "rm -r|-R|--recursive", "find -delete", "find|fd|fdfind|xargs|parallel & rm|unlink",
            "rsync --delete*|--remove-source-files !-n", "shred", "trash-empty", "rimraf",
            "truncate 0*|-s0*|-s-*|--size=0*|--size=-*", "mv|cp|ln /dev/null*", "rd|rmdir /s",
            "Remove-Item -Recurse|-r", "python* ~rmtree|os remove|os unlink", "node ~rmsync|rmdirsync|unlinksync",
            "ruby|perl ~rm_rf|rmtree|unlink",
        ],
        "tags": ["delete", "deletion", "rm", "cleanup", "data-loss", "destructive"],
    },
    "git": {
        "patterns": [
            # A lease guards what others pushed in between, not the rule that a branch is never rewritten.
            "git push -f|-d|--force|--force-with-lease|--mirror|--delete|--prune|+*|:* !-n", "git reset --hard|--keep",
            "git clean -f|--force !-n", "git checkout .", "git checkout -f|--force|--",
            "git switch -f|--discard-changes", "git restore !--staged|-S", "git restore -W|--worktree", "git branch -D",
            "git stash drop|clear",
            "git rebase !--abort|--continue|--quit|--edit-todo|--show-current-patch", "git filter-branch|filter-repo",
            "git reflog expire", "git update-ref -d", "git worktree remove", "gh repo delete|archive",
        ],
        "tags": ["git", "force-push", "history", "destructive"],
    },
    "database": {
        "patterns": [
            "psql|mysql|mariadb|sqlite3|sqlcmd|sqlplus|cockroach|duckdb|clickhouse|clickhouse-client|bq|snowsql "
            "~drop table|drop database|drop schema|drop column|drop index|truncate|delete from|alter table",
            "mongo|mongosh ~dropDatabase|drop|deleteMany", "redis-cli flushall|flushdb", "dropdb",
            "pg_restore -c|--clean",
            "alembic|flask downgrade", "rails|rake db:drop|db:reset|db:rollback|db:migrate*", "prisma migrate reset",
            "python* manage.py flush|migrate !--plan|--check", "manage.py flush|migrate !--plan|--check",
        ],
        "tags": ["database", "db", "sql", "migration", "migrations", "data-loss", "destructive"],
    },
    "infrastructure": {
        "patterns": [
            "terraform|tofu|terragrunt destroy|apply|import|taint", "terraform|tofu|terragrunt state rm|mv|push",
            "pulumi destroy|up", "cdk destroy|deploy", "aws delete-*|terminate-*|stop-*|modify-*", "aws s3 rm|rb|mv",
            "gcloud delete*", "az delete*", "gsutil rm|rb", "doctl delete*", "openstack delete*",
        ],
        "tags": ["infrastructure", "infra", "terraform", "cloud", "aws", "production", "destructive"],
    },
    "kubernetes": {
        "patterns": [
            "kubectl|oc delete|drain|apply|replace|scale|patch|cordon|edit", "kubectl|oc rollout restart|undo",
            "helm uninstall|delete|upgrade|rollback|install",
        ],
        "tags": ["kubernetes", "k8s", "kubectl", "helm", "deploy", "deployment", "production"],
    },
    "containers": {
        "patterns": [
            "docker|podman system|volume|image|container|network|builder prune",
            "docker|podman volume rm|remove", "docker|podman rm|rmi -f|--force", "docker|podman compose down",
            "docker-compose|podman-compose down",
        ],
        "tags": ["docker", "containers", "volumes", "destructive"],
    },
    "publish": {
        "patterns": [
            "npm|yarn|pnpm|bun publish|unpublish|deprecate", "twine upload", "uv|poetry|flit|hatch|pdm publish",
            "cargo publish|yank", "gem push|yank", "mvn deploy", "gradle|gradlew publish*", "dotnet|nuget push",
            "docker|podman push", "gh release create|delete|upload", "git push --tags|--follow-tags",
        ],
        "tags": ["publish", "publishing", "release", "npm", "pypi", "registry"],
    },
    "deploy": {
        "patterns": [
            "fly|flyctl deploy", "vercel --prod", "netlify deploy", "heroku pg:reset|apps:destroy",
            "ansible-playbook", "cap deploy", "serverless|sls deploy|remove", "firebase deploy",
            "wrangler deploy|publish|delete",
        ],
        "tags": ["deploy", "deployment", "release", "production"],
    },
    "disk": {
        "patterns": [
            "dd of=*", "mkfs*", "fdisk", "parted", "sgdisk", "wipefs", "blkdiscard", "zpool destroy", "zfs destroy",
            "lvremove", "vgremove", "* >/dev/sd*|>/dev/nvme*|>/dev/disk*|>/dev/mapper*|>/dev/vd*|>/dev/mmcblk*",
            "cp|tee /dev/sd*|/dev/nvme*|/dev/disk*|/dev/mapper*|/dev/vd*|/dev/mmcblk*",
        ],
        "tags": ["disk", "storage", "filesystem", "backup", "data-loss", "destructive"],
    },
    "permissions": {
        "patterns": ["chmod -R|--recursive|777|a+rwx|o+w", "chown|chgrp -R|--recursive", "setfacl -R|--recursive"],
        "tags": ["permissions", "chmod", "chown", "security"],
    },
    "remote-script": {
        "patterns": ["curl|wget | * <-"],
        "tags": ["remote-script", "curl", "install", "supply-chain", "security"],
    },
    "hidden-script": {
        "patterns": ["base64|base32 -d|-D|--decode | * <-", "openssl|gpg -d|--decrypt | * <-", "xxd -r | * <-",
                     "uudecode|gunzip|zcat|rev | * <-"],
        "tags": ["hidden-script", "obfuscation", "base64", "supply-chain", "security"],
    },
    "system": {
        "patterns": [
            "shutdown", "reboot", "poweroff", "halt", "systemctl stop|disable|mask|restart|kill",
            "service stop*|restart*", "killall", "pkill", "kill -9|-KILL",
            "iptables|ip6tables -F|--flush", "ufw disable|reset", "nft flush", "crontab -r",
            "userdel", "launchctl unload|bootout", "* | =",
            "* >/etc/*|>/boot/*|>/usr/*|>/bin/*|>/sbin/*|>/lib/*|>/sys/*|>/proc/*|>/var/lib/*",
            "tee|rm|mv|truncate /etc/*|/boot/*|/usr/*|/bin/*|/sbin/*|/lib/*|/sys/*|/proc/*|/var/lib/*",
            "sed -i*|--in-place /etc/*|/boot/*|/usr/*|/sys/*|/proc/*",
        ],
        "tags": ["system", "services", "operations", "ops", "firewall", "production"],
    },
}  # fmt: skip


OPTIONS: tuple[Option, ...] = (
    Option("base.default", "", "the user's own base, used where no other is found (user configuration only)", True),
    Option(
        "base.id",
        "",
        "the base's own id, which its records carry; made with its first signer, changed by nobody (khms.toml only)",
    ),
    Option("base.isolate_worktrees", False, "true gives each work tree of a repository a base of its own"),
    Option(
        "git.branch", "", "the branch that receives approvals; empty: the remote's default branch, else the current"
    ),
    Option(
        "git.sync",
        "auto",
        "whether a review shares at once what it decides; auto: where the base is its own repository and has a remote",
        choices=("auto", "on", "off"),
    ),
    Option("git.seconds", 60, "seconds after which one exchange with the remote is given up", least=1),
    Option("git.tries", 20, "how often a push is tried while others push too", least=1, most=100),
    Option("cards.types", {}, "further card types: name -> {level, labels}"),
    Option("belief.measured", 3.0, "what a measured card counts for or against a derived one", least=0),
    Option("belief.observed", 2.0, "the same of an observed one", least=0),
    Option("belief.reported", 1.0, "the same of a reported one", least=0),
    Option("belief.assumption", 1.0, "the same of an assumption", least=0),
    Option("belief.indirect", 2.0, "the same of a derived one", least=0),
    Option("belief.k", 4.0, "the balance for and against at which belief is 0.76", least=0.001),
    Option(
        "belief.idle",
        0.3,
        "share of a week that an unused card ages for condensing; 1 once a pattern has it",
        least=0,
        most=1,
    ),
    Option("lint.max_bytes", 262144, "largest content file, in bytes", least=1),
    Option("nightly.proposer", "rules", "who turns MARKs into candidates", True),
    Option(
        "nightly.model", "", "the model that claude, codex, gemini or openai is asked for; empty: its own choice", True
    ),
    Option("nightly.command", "", "the program, with its arguments, that the proposer command runs", True),
    Option("nightly.openai_url", "", "the endpoint of the proposer openai, such as http://127.0.0.1:8080/v1", True),
    Option(
        "nightly.openai_key_env", "OPENAI_API_KEY", "the environment variable that holds the key of that endpoint", True
    ),
    Option("nightly.allow_tools", False, "true accepts a proposer that cannot be kept from its tools", True),
    Option("nightly.call_seconds", 120, "seconds after which one question to a proposer is given up", least=1),
    Option("nightly.max_answer_bytes", 1048576, "most bytes that a proposer may print about one question", least=1024),
    Option("nightly.max_cards", 12, "most candidates a unit publishes; the rest is deferred", least=0),
    Option(
        "nightly.packet_chars",
        12000,
        "target size of what a proposer is shown about one MARK, in characters",
        least=500,
    ),
    Option("nightly.nearest", 5, "how many nearest cards a candidate lists", least=0, most=100),
    Option("nightly.same_jaccard", 0.9, "token Jaccard at or above which two bodies say the same", least=0, most=1),
    Option(
        "nightly.same_cosine", 0.92, "cosine of vectors over which two bodies are said to be alike", least=0, most=1
    ),
    Option(
        "nightly.deliver",
        "commit",
        "where a unit goes: a commit on the current branch, a branch of its own, that pushed, or a pull request of it",
        True,
        choices=("commit", "branch", "push", "pr"),
    ),
    Option(
        "nightly.transcripts",
        "all",
        "whose sessions an agent is shown as digests: all, none, or host names with commas; this base's sessions only",
        True,
    ),
    Option("nightly.generate", True, "false: transcripts only stand beside the MARKs, and no MARKs are found in them"),
    Option("nightly.logs", {}, "further sources: name -> path of a Markdown or JSONL log", True),
    Option("nightly.repositories", {}, "further sources: name -> path of a repository whose commits are read", True),
    Option("nightly.first_days", 7, "days of sessions that a first run looks back", least=0, most=3650),
    Option(
        "nightly.chunk_chars",
        24000,
        "size of the pieces in which digests are asked about, in characters",
        least=2000,
        most=400000,
    ),
    Option("nightly.max_chunks", 40, "most pieces that one run asks about; the rest waits", least=0, most=1000),
    Option("nightly.max_calls", 400, "most calls of a proposer's agent in one run; 0: no limit", least=0),
    Option(
        "nightly.budget_usd",
        0.0,
        "dollars that one run may spend, as the agent's host reports them; 0: no limit",
        least=0,
    ),
    Option("nightly.deadline", "", "time that one run may take, such as 90m; empty: no limit"),
    Option("nightly.parallel", 1, "calls of an agent at the same time", least=1, most=16),
    Option("nightly.repair", True, "one further call may put an answer of the wrong form right"),
    Option("nightly.stale_hours", 24, "hours after the last success from which nightly counts as overdue", least=0),
    Option("weekly.max_cards", 12, "most offers of a weekly unit; the rest comes with the next run", least=0),
    Option("weekly.stale_hours", 168, "hours after the last success from which weekly counts as overdue", least=0),
    Option(
        "review.allow_agents", False, "true lets an agent host's environment approve, recorded as agent:<host>", True
    ),
    Option("review.require_signed", False, "true makes an approval count only where an allowed signer signed it"),
    Option(
        "review.signing_key",
        "",
        "the SSH key that signs approvals: a path, or key::… for one in the agent; empty: git's user.signingkey",
        True,
    ),
    Option("gc.days", 30, "days after which khms gc removes old logs and states of sessions on this machine", least=0),
    Option("gc.unit_days", 90, "days after its last decision from which gc --units removes a finished unit", least=0),
    Option(
        "gc.deferred_days",
        365,
        "the same for a unit in which candidates were put off and nobody came back to them",
        least=0,
    ),
    Option("index.language", "english", "language of the stemmer and the stop words", choices=("none", *LANGUAGES)),
    Option("index.notes", False, "true makes every Markdown file of the base that git does not ignore a note"),
    Option("index.include", {}, "further folders of notes: name -> path", True),
    Option("recall.limit", 5, "hits shown", least=1, most=1000),
    Option(
        "recall.hnsw_from",
        200_000,
        "vectors from which a graph finds the nearest, where usearch is installed; fewer are all compared",
        least=1,
    ),
    Option("recall.depth", 50, "hits taken from each channel before ranking", least=1, most=10_000),
    Option(
        "recall.model",
        "",
        "embedding model: minilm (comes with khms[quality], answers in the server), a folder, or hub:owner/name; "
        "empty: the one that khms ships; none: recall by words alone",
        True,
    ),
    Option(
        "recall.floor",
        0.3,
        "evidence that the best hit must have, or nothing is on record; 0 shows whatever is nearest",
        least=0,
        most=1,
    ),
    # What the priors are worth is so small that among hits that match nearly alike they decide, and nothing else: two
    # neighbours of the first five lie 4-11 % apart, half of them. Given at random to the documents of the development
    # sets, all three together (0.02, 0.03, 0.03) cost 0.1 points of recall@5 and 0.3 of recall@10 of chat turns, 0.6
    # of the paraphrases' MRR, 0.1 of the notes', none of the identifiers'; at 0.03, 0.05, 0.05 it is 1.0 of recall@10.
    Option(
        "recall.scope",
        "",
        "the scope at hand, such as project:vane; empty: the repository that one works in, or that the base lies in",
    ),
    Option(
        "recall.prior_scope", 0.03, "share that a card of the project at hand gains, of another loses", least=0, most=1
    ),
    Option("recall.prior_evidence", 0.02, "share that a measured card gains and an assumption loses", least=0, most=1),
    Option("recall.prior_belief", 0.03, "share that a derived card gains or loses at full belief", least=0, most=1),
    Option("recall.prior_challenged", 0.8, "factor on the strength of a challenged card", least=0, most=1),
    Option("recall.prior_refuted", 0.6, "factor on the strength of a refuted card", least=0, most=1),
    Option("recall.prior_archived", 0.5, "factor on the strength of a superseded or condensed card", least=0, most=1),
    Option(
        "recall.diversity",
        0.6,
        "share of a hit's value that is its strength; the rest is its likeness to the hits before it, if any",
        least=0,
        most=1,
    ),
    Option("recall.alike", 0.8, "likeness from which two hits count as near-duplicates", least=0, most=1),
    Option("recall.personal", True, "whether the user's own base answers too where another one is asked"),
    Option("recall.query_chars", 4096, "characters of a query that are read", least=1, most=100_000),
    Option(
        "precheck.classes",
        COMMAND_CLASSES,
        "risky shell commands: class -> {patterns, tags}; a class in your file joins these, or replaces its namesake",
    ),
    Option(
        "server.enabled",
        "auto",
        "whether hooks and recall start a server that keeps the index and the model at hand; off: only by khms server",
        choices=("auto", "off"),
    ),
    Option("server.idle_minutes", 30, "minutes without a question after which the server ends itself", least=1),
    Option(
        "hooks.deadline_ms",
        800,
        "milliseconds after which a hook ends itself, whatever it is doing",
        least=50,
        most=60_000,
    ),
    Option("hooks.prompt_threshold", 0.5, "score from which a prompt gets a pointer", least=0, most=1),
    Option("hooks.shell_threshold", 0.5, "score from which a shell command gets a pointer", least=0, most=1),
    Option("hooks.edit_threshold", 0.6, "score from which an edit gets a pointer", least=0, most=1),
    Option("hooks.second_min", 0.6, "score from which a second card joins the first", least=0, most=1),
    Option("hooks.strong", 0.9, "score that passes the injection limit once", least=0, most=1),
    Option("hooks.cards", 2, "most cards in one injection", least=0, most=20),
    Option("hooks.warnings", 5, "most cards named before a risky shell command", least=0, most=20),
    Option("hooks.after_failure", False, "true asks about the error lines of a shell command that failed"),
    Option("hooks.rules", {}, "words -> a card's id or a note's path that is named where somebody uses them"),
    Option("hooks.chars", 900, "most characters of one injection, correctors not counted", least=0, most=20_000),
    Option("hooks.correctors", 2, "most correctors shown with one card", least=0, most=20),
    Option("hooks.corrector_chars", 110, "most characters of one corrector's line", least=20, most=1000),
    Option("hooks.window_minutes", 10, "length of the window that the injection limit counts in, in minutes", least=1),
    Option("hooks.per_window", 3, "injections within that window", least=0),
    Option("hooks.card_hours", 12, "hours in which a session gets a card at most once", least=0),
    Option("hooks.query_minutes", 15, "minutes in which the same query is not answered again", least=0),
    Option(
        "hooks.query_chars",
        2000,
        "characters of a prompt that are read; longer pasted text is cut",
        least=1,
        most=100_000,
    ),
    Option("experiment.name", "", "name of the experiment under way; empty: none, and every session gets pointers"),
    Option(
        "experiment.control", 0.5, "share of an experiment's sessions that get none, for comparison", least=0, most=1
    ),
    Option("experiment.salt", "", "another text draws the sessions of an experiment anew"),
)
