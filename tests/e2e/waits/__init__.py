"""Waits for a state of an object."""
