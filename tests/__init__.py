"""The tests: units by package, and end to end on the real Pulsar (`testbed`)."""
