"""Clients that use a cluster while it is disturbed."""
