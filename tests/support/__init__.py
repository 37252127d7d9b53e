"""What several folders of tests share and what needs the product; all else is in `testbed`.

    additions    additions to a table, made by hand: real files without a Pulsar behind them
    backlogs     backlogs as turns find them, of sizes that a test says
    iceberg      followers of Iceberg tables, and their rows by PyIceberg alone
    tables       tables made of such additions, and their maintenance with a clock of their own
    conversions  conversions without Spark
    examples     how many examples a Hypothesis test tries: all, or a share in the quick runs
    transactions writers of transactions that do what no client library would
    terminal     a program on a terminal of its own, and keys for it; one in the test's process
    maven_repository  a Maven repository on loopback
    stream_program  a streaming program as a process: its queries, checkpoints and sinks
    writing      rows written to a topic without Spark: staged, decided, sent
    steps        steps of the offloader's work at which a test kills it, or does something
    fixtures     types of fixtures
    schemas      definitions of Avro records
    running      `pulsar-lake offload` as a process, and what it did

Test modules of any folder import it; it imports none of them.
"""
