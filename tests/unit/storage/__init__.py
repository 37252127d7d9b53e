"""Storages: paths, options, and the identity that each client shows."""
