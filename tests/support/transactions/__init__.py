"""Writers of transactions that do what no client library would.

broker_wire    BrokerWire: a connection that sends what no client would
killed_writer  a writer of a transaction, killed while the network has its bytes
"""
