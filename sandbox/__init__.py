"""A real, multi-node Kubernetes on one bare Linux machine, without a container engine.

`python -m sandbox --help` lists what it can do; docs/sandbox.md says how it is made.
"""
