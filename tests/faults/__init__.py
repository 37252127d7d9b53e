"""The long seeded run: publish, offload and query, while servers, network and store fail.

    python -m tests.faults --seed 7 --seconds 3600        (make faults ARGS="…")

    streams    publishes, and knows what has to be there
    injectors  inject faults into servers, network, store and the offloader's clock
    daemon     the offloader as a process, its memory and open files
    stepped_clock  runs the offloader with a clock that a file sets
    queries    ask, and compare
    stream_driver  two streaming queries as a process, what they wrote and failed of
    run        puts them together
    report     what came of it

CI runs it for minutes.
"""
