"""Cases of the reader without Spark, but for one query over small ledgers.

reader         a topic to decoded Arrow in one process, against clients of the broker
open_tails     open ledgers: from the bookies, or from the broker
tiered         what Pulsar's own tiered storage has taken, against a client of the broker
small_ledgers  very small ledgers: what each costs, to Arrow and in a hot query
stages         CPU a row of each stage of reader and offloader
json_forms     CPU a row to decode JSON in the forms that other clients write
counts         CPU a message to count messages of batches, by codec
"""
