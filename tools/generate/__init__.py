"""Pages of docs/ that are generated. A module per page, with PAGE (its path) and page() (its text)."""
