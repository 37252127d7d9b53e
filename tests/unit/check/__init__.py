"""Each check's finding, and how checks are run: what needs no cluster."""
