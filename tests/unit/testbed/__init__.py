"""`testbed` itself, as far as it needs no servers."""
