"""Real servers of each kind of storage, as processes on loopback; emulators where there are none.

kinds        by name, and what tests ask of each
moto_s3      S3: moto as a program (`testbed.s3` starts it), whose puts are one step each
versity      S3: versitygw, over a directory
gcs          Google Cloud Storage: fake-gcs-server, behind `gcs_xml`
gcs_xml      the XML API that object_store speaks, beside the JSON API that Spark's client speaks
azurite      Azure Blob: Azurite, behind `azure_blob`
azure_blob   what Azurite lacks of the Blob API
translators  either of those two as a process
hdfs         HDFS: a NameNode and a DataNode in one JVM (Hadoop's MiniDFSCluster)
__main__     `python -m testbed.storages`: whether this machine can build and start each
"""
