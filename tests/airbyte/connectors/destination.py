"""A destination that writes SQLite, durably before each state that it gives back, and behaves badly where its
configuration says so. The standard library only, so that it starts in milliseconds.

{"path": "out.db", "mode": "...", "delay_s": 0}; see `answer` and `main`.
"""

import json
import os
import sqlite3
import sys
import time

OUT = sys.stdout


def say(message):
    OUT.write(json.dumps(message, separators=(",", ":")) + "\n")
    OUT.flush()


class Store:
    """One table for all streams. Deduplicated streams have one row for each id."""

    def __init__(self, config, catalog):
        self.database = sqlite3.connect(config["path"])
        self.database.execute("PRAGMA synchronous = FULL")
        self.database.execute("CREATE TABLE IF NOT EXISTS rows (stream TEXT, id, data TEXT, generation INTEGER)")
        self.database.execute("CREATE TABLE IF NOT EXISTS lines (line TEXT)")
        self.database.execute("CREATE INDEX IF NOT EXISTS by_id ON rows (stream, id)")
        self.database.commit()
        self.keep_lines = config.get("keep_lines", False)
        self.streams = {}
        for entry in catalog["streams"]:
            self.streams[entry["stream"]["name"]] = entry

    def write(self, record):
        entry = self.streams[record["stream"]]
        stream, key = record["stream"], record["data"].get("id")
        if entry["destination_sync_mode"] == "append_dedup":
            self.database.execute("DELETE FROM rows WHERE stream = ? AND id = ?", (stream, key))
        self.database.execute(
            "INSERT INTO rows VALUES (?, ?, ?, ?)",
            (stream, key, json.dumps(record["data"]), entry.get("generation_id")),
        )

    def line(self, line):
        if self.keep_lines:
            self.database.execute("INSERT INTO lines VALUES (?)", (line,))

    def complete(self, name):
        entry = self.streams[name]
        oldest = entry.get("minimum_generation_id", 0)
        if oldest:
            self.database.execute("DELETE FROM rows WHERE stream = ? AND generation < ?", (name, oldest))

    def flush(self):
        self.database.commit()


def answer(mode, state, held):
    """How a state is given back."""
    if mode == "ack_none":
        return
    if mode == "ack_unwrapped":
        say(state)
        say(state)
        return
    if mode in ("ack_without_id", "ack_renormalised", "ack_twice_without_id"):
        state = {key: value for key, value in state.items() if key in ("type", "stream", "global", "data")}
    if mode == "ack_renormalised":
        state = json.loads(json.dumps(state, sort_keys=True), parse_float=lambda text: float(text))
        if "stream" in state:
            state["stream"]["stream_descriptor"].setdefault("namespace", None)
    if mode == "ack_reversed":
        held.append(state)
        if len(held) < 3:
            return
        for one in reversed(held):
            say({"type": "STATE", "state": one})
        held.clear()
        return
    if mode == "ack_unknown":
        say({"type": "STATE", "state": {"type": "STREAM", "stream": {"stream_descriptor": {"name": "who"}, "stream_state": {}}, "id": 999}})
    say({"type": "STATE", "state": state})
    if mode in ("ack_twice", "ack_twice_without_id"):
        say({"type": "STATE", "state": state})


def misbehave(mode, config):
    """Before anything is read."""
    if mode == "hang":
        time.sleep(3600)
    if mode == "exit_at_once":
        os._exit(config.get("code", 1))
    if mode == "close_input":
        os.close(0)
        time.sleep(config.get("sleep_s", 0.2))
        os._exit(0)
    if mode == "long_line":
        OUT.write("x" * config["bytes"] + "\n")
        OUT.flush()
    if mode == "noise":
        print("not JSON")
        print('{"type":"RECORD","record":{"stream":"a","data":{"id":1},"emitted_at":1}}')
        print('{"type":"STATE","state":{"type":"STREAM"}}')
        OUT.flush()


def main():
    command, options = sys.argv[1], sys.argv[2:]
    paths = dict(zip(options[::2], options[1::2]))
    if command == "spec":
        say({"type": "SPEC", "spec": {"connectionSpecification": {}, "supported_destination_sync_modes": ["append", "overwrite", "append_dedup"]}})
        return 0
    config = json.load(open(paths["--config"]))
    mode = config.get("mode", "plain")
    if command == "check":
        say({"type": "CONNECTION_STATUS", "connectionStatus": {"status": "FAILED" if mode == "check_failed" else "SUCCEEDED"}})
        return 0
    misbehave(mode, config)
    store = Store(config, json.load(open(paths["--catalog"])))
    held, records = [], 0
    for line in sys.stdin:
        store.line(line)
        message = json.loads(line)
        if message["type"] == "RECORD":
            store.write(message["record"])
            records += 1
            if mode == "die" and records == config["after"]:
                store.flush()
                os._exit(config.get("code", 1))
            if mode == "kill_self" and records == config["after"]:
                os.kill(os.getpid(), 9)
        elif message["type"] == "STATE":
            store.flush()
            if config.get("delay_s"):
                time.sleep(config["delay_s"])
            state = message["state"]
            if config.get("count_wrong"):
                state["destinationStats"] = {"recordCount": 0.0}
            answer(mode, state, held)
        elif message["trace"]["type"] == "STREAM_STATUS":
            store.complete(message["trace"]["stream_status"]["stream_descriptor"]["name"])
    store.flush()
    if mode == "hang_at_end":
        time.sleep(3600)
    if mode == "closed_hang":
        os.close(1)
        time.sleep(3600)
    if mode == "exit_with":
        return config["code"]
    if mode == "fork_and_leave":
        if os.fork() == 0:
            os.setsid()
            os.execv("/bin/sleep", ["sleep", "3600"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
