"""Checks that ask Kubernetes and etcd, never the operator."""
