"""The offloader, its settings, turns and files."""
