"""The offloader as a process."""
