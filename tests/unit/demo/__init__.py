"""The parts of `make demo` that need no servers."""
