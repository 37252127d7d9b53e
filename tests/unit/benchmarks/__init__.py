"""The parts of `make bench` that need no servers."""
