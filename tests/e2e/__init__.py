"""What Molecule scenarios and benchmarks share: client traffic, faults, checks, waits and fixtures.

Each file is a command, `python -m tests.e2e.<folder>.<file>`, that a task of a scenario runs.
"""
