"""One contract for every source: the same topic gives the same rows from each tier.

The oracle is what was published. `corpus` holds the topics; `test_sources` reads each of them
from BookKeeper, the broker and Parquet.

For what `pulsar-client` cannot write the oracle is Pulsar's Java client: `test_oracle` has kinds of
messages, `test_oracle_corpus` the schemas of `kinds`.
"""
