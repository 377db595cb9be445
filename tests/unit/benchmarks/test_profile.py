from __future__ import annotations

import pytest

from benchmarks import profile
from sandbox import layout


def test_settings_are_read_from_the_dockerfile() -> None:
    found = profile.settings((layout.REPOSITORY / "Dockerfile").read_text())
    assert found["ANSIBLE_GATHERING"] == "explicit"
    assert not any(value.startswith("/") for value in found.values())


def test_comments_and_paths_are_left_out_of_the_settings() -> None:
    text = "# ENV ANSIBLE_OLD=1\nENV HOME=/tmp \\\n    ANSIBLE_HOME=/tmp/a \\\n    ANSIBLE_NOCOLOR=true\n"
    assert profile.settings(text) == {"ANSIBLE_NOCOLOR": "true"}


def test_role_gets_the_variables_of_ansible_operator() -> None:
    found = profile.parameters({"metadata": {"namespace": "n", "name": "a"}, "spec": {"size": 3}})
    assert found["ansible_operator_meta"] == {"namespace": "n", "name": "a"}
    assert found["size"] == 3
    assert found["_etcdops_dev_etcdcluster"]["spec"] == {"size": 3}


def test_timeline_covers_the_whole_run() -> None:
    def event(second: float, kind: str, **data: str) -> dict[str, object]:
        return {"event": kind, "created": f"1970-01-01T00:01:0{second}+00:00", "event_data": data}

    events = [
        event(4.5, "playbook_on_stats"),
        event(2, "playbook_on_task_start", task="Plan"),
        event(1, "playbook_on_start"),
        event(3.5, "runner_on_ok", task="Plan"),
        event(4, "playbook_on_task_start", task="Requeue"),
    ]
    parts = profile.timeline(60, 65, events)
    assert [part.what for part in parts] == [
        "start ansible-runner and ansible-playbook",
        "read the play",
        "task: Plan",
        "task: Requeue",
        "exit of both programs",
    ]
    assert [part.seconds for part in parts] == pytest.approx([1, 1, 2, 0.5, 0.5])


def test_import_times_are_summed_by_package() -> None:
    text = (
        "import time: self [us] | cumulative | imported package\n"
        "import time:       150 |        150 |   ansible.utils\n"
        "import time:       100 |        250 | ansible\n"
        "import time:        30 |         30 | json\n"
        "a warning | with a line\n"
    )
    assert profile.imports(text) == {"ansible": 250, "json": 30}
