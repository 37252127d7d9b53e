"""The tests: units by package, and end to end on the real Pulsar (`testbed`).

durations  how long the tests of each folder took, as a table
footprint  the peak of JVMs and memory while a command runs
"""
