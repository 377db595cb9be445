"""A model of Kubernetes and etcd, driven by the real planner and the real role, under random faults.

python -m tests.simulation --seeds 100000      many schedules
python -m tests.simulation --seed 4711         replay one schedule and print its trace
"""
