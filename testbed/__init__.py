"""The real Pulsar as separate processes on loopback, and what can go wrong with it.

What lives here, one room each:

- `jars`: fetches the server's jars once, with Maven, into a cache (`pom.xml` pins them);
- `process`: one child process that dies with its parent, and is stopped by its own pid;
- `config`: the configuration files and JVM flags of ZooKeeper, bookies and broker;
- `cluster`: `Cluster`, which boots, kills, pauses and restarts the pieces;
- `admin`: what tests ask of the admin REST API, independent of the product's own client;
- `publish`: writes messages and returns what was written, the oracle of every test;
- `s3`: an S3 server (moto) in a process of its own;
- `proxy`: a TCP proxy that refuses, stalls, corrupts or cuts;
- `faults`: an object store that fails on demand (and the TCP proxy, re-exported).

Used by pytest, `make demo` and `make bench`. Imports nothing of the product, so that it
cannot agree with a bug in it.
"""
