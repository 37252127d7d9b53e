"""Session.

builder              Spark sessions with Delta, S3A and the catalog ``pulsar`` set up.
conf                 ``python -m spark_ext.session.conf --config FILE``: the settings for S
handoff              Handing a configuration to other processes: the planner and Spark's Py
settings             [spark], and LakeConfig: the reader's sections and Spark's.
jvm                  Starting Spark's JVM with its standard error in our hands.
"""

__all__: list[str] = []
