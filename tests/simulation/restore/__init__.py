"""A model of Kubernetes, its Jobs and EtcdClusters, driven by the real planners and roles of backups and restores.

python -m tests.simulation.restore --seeds 10000      many schedules
python -m tests.simulation.restore --seed 4711        replay one schedule and print its trace
"""
