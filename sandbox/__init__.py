"""A real multi-node Kubernetes on one Linux machine, without a container engine.

`python -m sandbox --help` lists the commands; docs/sandbox.md explains how it works.
"""
