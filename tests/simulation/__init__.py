"""Histories of the real product in a simulated world, under one seed: nothing lost, nothing twice.

    product     the real product, on a simulated Pulsar and storage
    streams     histories with a stream: their steps, and what is checked
    sinks       histories with writes to a topic
    compacted   histories of a compacted view
    world       one history's world, and what is watched in it all the time
    checks      turns, rounds and queries, each with what is checked of it
    kinds       what each kind of step does
    recipes     what has to come in order for something rare to be tried
    steps       the steps of a history, drawn from a seed
    shrinking   a failing history made as short as it gets
    run         many histories, in one process or several
    histories   the kinds of histories, and how many of each the tests run

The Pulsar is ``testbed.simulation``, as is the list that all is compared with.
"""
