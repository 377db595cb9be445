"""A process for tests: waits for its end."""

from __future__ import annotations

import time

print("waiting", flush=True)
time.sleep(60)
