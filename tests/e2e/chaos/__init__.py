"""Random faults and edits on a real cluster, under the history checker."""
