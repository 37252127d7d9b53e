"""A catalog that is nothing but files of the storage, for who has no other: ``catalog = "files"``.

A table is a directory, and its metadata are ``metadata/v1.metadata.json``, ``v2…``: what Iceberg
calls a file system table, and readers without a catalog read by their directory. The next version
is a put of its file if that is absent, which is the storage's own decision of who was first, as in
the Delta log. So the newest is the last one that is there; ``version-hint.text`` says from where on
to look, and is written after the commit (``version_hint.py``).

Source: Iceberg's specification, "File System Tables".
"""

from __future__ import annotations

import re
from typing import Any, Literal

import pyarrow as pa
import pyarrow.fs as pafs
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NoSuchTableError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, CreateTableTransaction, Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataV1
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties

from offloader.iceberg.catalogs.staged_table import staged_table
from offloader.iceberg.storage_files import StorageFiles, location_of
from offloader.iceberg.version_hint import METADATA_END, pointed_at
from reader.errors import UnavailableError
from reader.storage import Storage

__all__ = ["DirectoryCatalog"]

_FORMAT_VERSION: Literal[2] = 2
# What a first commit is made on top of: it says all that there is, the format's version included.
_NOTHING = TableMetadataV1.model_construct(last_column_id=-1, schema=Schema())
_NUMBERED = re.compile(r"v(\d+)\.metadata\.json")


class DirectoryCatalog(NoopCatalog):
    """Tables below ``root``, a path in ``storage``: a directory for each part of their names.

    Only what following a table takes. Thread-safe.
    """

    def __init__(self, name: str, storage: Storage, root: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self._storage = storage
        self._root = root
        self._files = StorageFiles(properties)

    def create_namespace(
        self, namespace: str | Identifier, properties: Properties = EMPTY_DICT
    ) -> None:
        """A namespace is there once a table is."""

    def create_namespace_if_not_exists(
        self, namespace: str | Identifier, properties: Properties = EMPTY_DICT
    ) -> None:
        """A namespace is there once a table is."""

    def namespace_exists(self, namespace: str | Identifier) -> bool:
        return True

    def create_table_transaction(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Properties = EMPTY_DICT,
    ) -> CreateTableTransaction:
        """Its first version, once that is committed; the location is the directory."""
        return staged_table(
            self,
            self._files,
            identifier,
            self._convert_schema_if_needed(schema, _FORMAT_VERSION),
            location_of(self._storage, self._directory(identifier)),
            partition_spec,
            sort_order,
            properties,
        )

    def load_table(self, identifier: str | Identifier) -> Table:
        """The newest version. Raises NoSuchTableError."""
        directory = self._directory(identifier)
        version = self._newest(directory)
        if version is None:
            raise NoSuchTableError(f"there is no table at {location_of(self._storage, directory)}")
        return self._read(identifier, version)

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        """The next version, or the first. Raises CommitFailedException where another writer was
        first, CommitStateUnknownException where the storage did not say."""
        directory = self._directory(table.name())
        before = self._newest(directory)
        current = None if before is None else self._read(table.name(), before)
        for requirement in requirements:
            requirement.validate(current.metadata if current else None)
        metadata = update_table_metadata(
            current.metadata if current else _NOTHING,
            updates,
            enforce_validation=current is None,
            metadata_location=current.metadata_location if current else None,
        )
        version = (before or 0) + 1
        try:
            mine = self._put(directory, version, metadata)
        except UnavailableError as error:
            raise CommitStateUnknownException(str(error)) from error
        if not mine:
            raise CommitFailedException(f"version {version} is another writer's")
        hint = pointed_at(self._storage, directory + "/metadata")
        if hint.isdigit() and int(hint) > version:
            # What was there was removed long after it was superseded: we have slept over that.
            raise CommitFailedException(f"version {version} was superseded long ago, by {hint}")
        location = self._location(directory, version)
        return CommitTableResponse(metadata=metadata, **{"metadata-location": location})

    def _put(self, directory: str, version: int, metadata: TableMetadata) -> bool:
        """Whether it is ours that is there: after an answer that was lost, a store's own second
        try finds the first one's."""
        data = metadata.model_dump_json(exclude_none=True).encode()
        path = f"{directory}/metadata/v{version}{METADATA_END}"
        objects = self._storage.objects()
        return objects.put_if_absent(path, data) or objects.get(path) == data

    def _newest(self, directory: str) -> int | None:
        metadata = f"{directory}/metadata"
        hint = pointed_at(self._storage, metadata)
        version = int(hint) if hint.isdigit() else 0
        if not (version and self._is_there(directory, version)):
            names = [one.path.rpartition("/")[2] for one in self._storage.objects().below(metadata)]
            numbers = [int(match[1]) for one in names if (match := _NUMBERED.fullmatch(one))]
            return max(numbers, default=None)
        while self._is_there(directory, version + 1):
            version += 1
        return version

    def _is_there(self, directory: str, version: int) -> bool:
        filesystem, root = self._storage.filesystem()
        found = filesystem.get_file_info(f"{root}/{directory}/metadata/v{version}{METADATA_END}")
        return bool(found.type == pafs.FileType.File)

    def _directory(self, identifier: str | Identifier) -> str:
        return "/".join((self._root, *Catalog.identifier_to_tuple(identifier)))

    def _location(self, directory: str, version: int) -> str:
        return location_of(self._storage, f"{directory}/metadata/v{version}{METADATA_END}")

    def _read(self, identifier: str | Identifier, version: int) -> Table:
        location = self._location(self._directory(identifier), version)
        metadata = FromInputFile.table_metadata(self._files.new_input(location))
        properties: dict[str, Any] = self.properties
        return Table(
            identifier=Catalog.identifier_to_tuple(identifier),
            metadata=metadata,
            metadata_location=location,
            io=StorageFiles(properties),
            catalog=self,
        )
