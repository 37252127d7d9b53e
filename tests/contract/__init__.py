"""One contract for every source: the same topic gives the same rows from each tier.

The oracle is what was published; `test_sources` reads each topic from BookKeeper, the broker and
Parquet. For what `pulsar-client` cannot write the oracle is Pulsar's Java client: `test_oracle` has
kinds of messages, `test_oracle_corpus` the schemas of `kinds`.

    kit            the contract of a source as tests; `test_source_contract` runs each source
    corpus         topics by `pulsar-client`: what is published, and what must come out
    against_java   a topic's rows beside what the Java client reads of it
    oracle_corpus  topics by the Java client: all cases of `kinds`
    kinds          these cases, by kind of schema
"""

import pytest

pytest.register_assert_rewrite("tests.contract.kit")
