"""The offloader on real storage and the real Pulsar."""
