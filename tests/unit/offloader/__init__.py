"""The offloader, its schedule, turns and files."""
