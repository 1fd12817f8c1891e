"""A destination on the real airbyte-cdk that writes SQLite.

One table for each stream: the record as JSON, its key, its generation. Everything before a state is durable
before the state is given back, with the count of records since the state before. Older generations are
dropped when their stream is complete, and not before.
"""

import json
import os
import sqlite3
import sys
import time
from typing import Any, Iterable, Mapping

import orjson
from airbyte_cdk.destinations import Destination
from airbyte_cdk.models import (
    AirbyteConnectionStatus,
    AirbyteMessage,
    AirbyteStateStats,
    ConfiguredAirbyteCatalog,
    DestinationSyncMode,
    Status,
    Type,
)

BATCH_RECORDS = 1_000


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Table:
    """A stream at the destination."""

    def __init__(self, database: sqlite3.Connection, configured: Any) -> None:
        self.database = database
        self.name = quoted("_".join(filter(None, [configured.stream.namespace, configured.stream.name])))
        self.keys = configured.primary_key or []
        self.generation = configured.generation_id or 0
        self.oldest = configured.minimum_generation_id or 0
        self.rows: list[tuple[Any, ...]] = []
        deduplicates = configured.destination_sync_mode == DestinationSyncMode.append_dedup
        self.verb = "INSERT OR REPLACE" if deduplicates else "INSERT"
        unique = " UNIQUE" if deduplicates else ""
        database.execute(f"CREATE TABLE IF NOT EXISTS {self.name} (key TEXT{unique}, data TEXT, generation INTEGER)")

    def key(self, data: Mapping[str, Any]) -> str:
        found = []
        for path in self.keys:
            value: Any = data
            for field in path:
                value = value.get(field) if isinstance(value, dict) else None
            found.append(value)
        return json.dumps(found)

    def add(self, data: Mapping[str, Any]) -> None:
        self.rows.append((self.key(data), orjson.dumps(data).decode(), self.generation))
        if len(self.rows) >= BATCH_RECORDS:
            self.flush()

    def flush(self) -> None:
        self.database.executemany(f"{self.verb} INTO {self.name} VALUES (?, ?, ?)", self.rows)
        self.rows.clear()

    def complete(self) -> None:
        if self.oldest:
            self.database.execute(f"DELETE FROM {self.name} WHERE generation < ?", (self.oldest,))


class SqliteDestination(Destination):
    """`check` and `write`; the kit does the rest."""

    def check(self, logger: Any, config: Mapping[str, Any]) -> AirbyteConnectionStatus:
        try:
            sqlite3.connect(config["path"]).execute("PRAGMA schema_version").fetchone()
        except sqlite3.Error as error:
            return AirbyteConnectionStatus(status=Status.FAILED, message=f"{config['path']}: {error}")
        return AirbyteConnectionStatus(status=Status.SUCCEEDED)

    def write(
        self,
        config: Mapping[str, Any],
        configured_catalog: ConfiguredAirbyteCatalog,
        input_messages: Iterable[AirbyteMessage],
    ) -> Iterable[AirbyteMessage]:
        database = sqlite3.connect(config["path"])
        database.execute("PRAGMA synchronous = FULL")
        tables: dict[tuple[str | None, str], Table] = {}
        for entry in configured_catalog.streams:
            tables[(entry.stream.namespace or None, entry.stream.name)] = Table(database, entry)
        counts = dict.fromkeys(tables, 0)

        def flush() -> None:
            for table in tables.values():
                table.flush()
            database.commit()

        for message in input_messages:
            if message.type == Type.RECORD:
                name = (message.record.namespace or None, message.record.stream)
                tables[name].add(message.record.data)
                counts[name] += 1
            elif message.type == Type.STATE:
                flush()
                time.sleep(config.get("delay_ms", 0) / 1_000)
                stream = message.state.stream
                if stream is not None:
                    name = (stream.stream_descriptor.namespace or None, stream.stream_descriptor.name)
                    concerned = [name]
                else:
                    concerned = list(counts)
                total = sum(counts[name] for name in concerned)
                counts.update(dict.fromkeys(concerned, 0))
                message.state.destinationStats = AirbyteStateStats(recordCount=float(total))
                yield message
            elif message.type == Type.TRACE and message.trace.stream_status is not None:
                status = message.trace.stream_status
                name = (status.stream_descriptor.namespace or None, status.stream_descriptor.name)
                if status.status.value == "COMPLETE":
                    tables[name].flush()
                    tables[name].complete()
        flush()
        database.close()


def main() -> None:
    SqliteDestination().run(sys.argv[1:])
    # Nothing is left to be done: the interpreter need not take everything apart.
    sys.stdout.flush()
    os._exit(0)
