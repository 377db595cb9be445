"""Faults: lost members and data, damaged snapshots, a killed operator, full volumes."""
