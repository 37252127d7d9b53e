"""One contract for every source: the same topic gives the same rows from each tier.

The oracle is what was published, and what Pulsar's Java client reads.

    corpus         a topic for every kind of message, published once and read by every reader
    kinds          schemas and values for the Java client, and what comes of them
    stream         topics that are followed in small batches
    tiered         what Pulsar's own tiered storage has taken
    kit            the contract of a source as tests; `test_source_contract` runs each source
    key_provider   a function that returns private keys, for any process
    rows           the rows of a topic by their keys, without Spark
    java           what the Java client reads, as rows
    against_java   a topic that changes beside what the Java client reads of it
"""

import pytest

pytest.register_assert_rewrite(
    "tests.contract.kit", "tests.contract.corpus.comparison", "tests.contract.against_java"
)
