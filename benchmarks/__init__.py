"""`make bench`: how fast the product is beside its peers, all in one run on a real Pulsar.

- `events`, `encode`: the rows, made up from a seed, and what they are as JSON and Avro;
- `topics`: what is published, each topic once a run and only if a case asks for it;
- `world`: servers, topics, tables, Spark sessions, each made when first asked for;
- `peers`: who is measured beside the product: `pulsar-client`, Pulsar's Java client;
- `measure`: how contenders take turns, and what a case returns;
- `cases`: one module a case; a new one is a module there and a line in `cases/__init__`;
- `results`: the table, `results/latest.json` and the charts;
- `__main__`: the runner.

It uses the product as users do, and the servers of `testbed`.
"""
