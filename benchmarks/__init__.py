"""Benchmarks of the operator (`make bench`). Results are ratios within one run; no test depends on a duration."""
