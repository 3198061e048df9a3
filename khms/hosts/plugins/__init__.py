"""khms as something that a host installs and a team shares: plugins, a skill, a section of AGENTS.md."""
