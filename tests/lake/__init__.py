"""The whole on the real cluster: segments that move, servers that die, bad input, random steps."""
