"""The test servers themselves, entries of the real cluster, decoded, and the installed wheel."""
