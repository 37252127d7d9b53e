"""What tests, demo and benchmarks share: the real Pulsar on loopback, and what goes wrong with it.

    admin       what tests ask of the admin REST, independent of the product's own client
    publish     writes messages and returns what was written, the oracle of every test
    s3          an S3 server (moto) in a process of its own
    standalone  a standalone Spark master and its workers
    process     one child process that dies with its parent, and is stopped by its own pid
    usage       CPU seconds and memory of processes, out of /proc
    proxy       a TCP proxy that refuses, stalls, corrupts or cuts
    faults      an object store that fails on demand (and the TCP proxy, re-exported)
    screen      how demo and benchmarks print: numbered steps, tables, checks that are counted
    closing     what a ``with`` closes
    serving     an HTTP server of a test's own, for one block
    __main__    `python -m testbed`: a cluster and an S3 server by hand, until Ctrl-C

    cluster     a real Pulsar, as two JVMs or as one for each server
    simulation  a Pulsar in memory, for thousands of histories a minute
    storages    servers of GCS, Azure, HDFS and one more of S3
    server      the server's jars, its configuration files and JVM flags
    security    certificates, tokens, and the cluster with TLS and authorization on
    clients     Pulsar's clients of other languages as writers of random types
    programs    programs of no Python package, built once into the cache
    oracle      Pulsar's own Java client as an oracle
    tiered      Pulsar's own tiered storage: namespaces that use it, topics that are moved there

tests, demo and benchmarks import this package and never each other. It imports nothing of the
product, so that it cannot agree with a bug in it, and no product package imports it.
"""
