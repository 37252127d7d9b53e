"""One contract for every source: the same topic gives the same rows from each tier.

The oracle is what was published. `corpus` holds the topics; `test_sources` reads each of them
from BookKeeper, the broker and Parquet.
"""
