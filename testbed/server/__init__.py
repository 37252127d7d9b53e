"""The Pulsar server of the tests as files: what `testbed.cluster` starts.

    jars     fetches the server's jars once, with Maven, into a cache (`pom.xml` pins them)
    classes  compiles the testbed's own Java against these jars, once
    config   the configuration files and JVM flags of ZooKeeper, bookies and broker

Nothing runs here. Imports `testbed.process`, for its error.
"""
