"""The test servers themselves, and entries of the real cluster, decoded."""
