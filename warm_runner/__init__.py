"""Ansible without its start-up time: a resident Python that forks for each run. See docs/warm-runner.md."""
