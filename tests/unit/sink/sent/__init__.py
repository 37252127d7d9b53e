"""Entries that are sent: each once, whatever happens on the way."""
