"""Streams: where they are, and how far a batch goes."""
