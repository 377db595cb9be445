"""Clients that write to a cluster."""
