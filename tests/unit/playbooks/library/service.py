#!/usr/bin/python
"""The service manager of the test's machines: starts what <name>.json says, after ending what it has started before.

Ansible takes it for its own where a machine has no service manager that it knows.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    module = AnsibleModule({"name": {"type": "path"}, "state": {"choices": ["restarted"]}})
    unit = Path(module.params["name"])
    service = json.loads(unit.read_text())
    os.kill(service["pid"], signal.SIGTERM)
    while Path(f"/proc/{service['pid']}/cmdline").exists() and Path(f"/proc/{service['pid']}/cmdline").read_bytes():
        time.sleep(0.05)  # a zombie has no command line
    with unit.with_suffix(".log").open("ab") as log:
        started = subprocess.Popen(service["command"], stdout=log, stderr=log, start_new_session=True)
    unit.write_text(json.dumps({**service, "pid": started.pid}))
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
