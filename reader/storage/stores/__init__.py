"""What speaks to a storage, where pyarrow has no filesystem that takes our options.

One interface for both of its uses: small objects (``Objects``) and the files of datasets.
Imports ``reader.background``, ``reader.errors``, ``reader.storage.last_calls`` and
``reader.storage.stored_object``.

    store_client      the interface, and the name of a file that is being written
    obstore_client    S3, GCS, Azure and directories, by the store layer that delta-rs has
    hdfs_client       HDFS, by hdfs-native, which delta-rs has for it
    arrow_filesystem  any of them as a filesystem of pyarrow's
"""

from reader.storage.stores.store_client import StorageClient, is_temporary, temporary_name

__all__ = ["StorageClient", "is_temporary", "temporary_name"]
