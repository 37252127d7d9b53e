"""The real product in a simulated world: what is under it is replaced, and nothing of itself.

    clients     the product's clients, of which admin and bookies are simulated
    broker      in place of the reader through a broker
    portions    rows in small portions, any of which may be unsupported; small files of writes
    storage     the product's storage: files in memory, whose times and faults are simulated
    log         delta-rs on that storage: who commits when, by which clock
    in_thread   threads of the product, run in this one
    hosts       offloaders: turns, rounds and maintenance of one process
    queries     what a query over one snapshot gives
    publisher   producers on connections to the simulated broker
    drivers     drivers that write, and their executors, as Spark runs them
    streams     a stream: its batches, read as Spark reads their plans

Which rows there have to be, and when an error is none, is not here: ``tests.simulation.checks``.
"""
