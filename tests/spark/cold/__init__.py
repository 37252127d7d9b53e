"""The cold half of a topic: which files are read, and that no row is missing."""
