"""`make bench`: the product's speed compared with its peers, in one run on a real Pulsar.

    __main__    the runner
    case        what a case is, and what it is given
    cases       one module a case; a new one is a module there and a line in `cases/__init__`
    contenders  who is measured: the product's ways to read, and its peers
    offload_process  the offloader in a process of its own, with its Spark
    data        the rows, made up from a seed, and the topics that they are published to
    measure     how contenders take turns, and what a case returns
    results     the table, `results/latest.json`, machine and versions
    chart       the charts: each target and the measured value relative to it
    servers     one cluster and those who talk to it, and what their CPUs have spent
    world       clusters, topics, tables, Spark sessions, each made when first asked for

It uses the product as users do, and where a case is about a part of it, that part; and the servers
of `testbed`. Tests and demo do not belong here.
"""
