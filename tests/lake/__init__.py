"""The whole on the real cluster: segments that move, a silent bookie, topics that change."""
