"""What scenarios and benchmarks prove with: a writer that misses nothing, losses on demand, a look from all sides."""
