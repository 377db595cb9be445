"""What is measured, against what: `make bench`. Always as ratios within one run, never as a timed test."""
