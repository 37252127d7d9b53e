"""The whole on the real cluster: segments that move, a silent bookie, bad input, random steps."""
