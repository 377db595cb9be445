"""Starts a server: `python warm_runner <program> <its path> <socket>`. Called by client.start()."""

import sys

sys.path[0] = __file__.rpartition("/warm_runner/")[0]

from warm_runner import server

server.main()
