"""What starts a base's jobs by the clock, one file a scheduler: `cron`, `systemd`, `launchd`, by name in `registry`.

`installing` puts a base's jobs there and takes them away, `record` remembers what was put where and in which
environment, `running` is what a scheduler starts, `joblog` what it leaves to read, `standing` how all of that stands.
A scheduler knows neither what a job does nor what a base holds.
"""
