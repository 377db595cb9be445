"""Ansible without its start-up time: a resident Python that forks for every run. See docs/warm-runner.md."""
