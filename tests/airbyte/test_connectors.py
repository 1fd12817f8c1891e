"""Syncs with real connectors; `run-connectors` installs them and sets WINDLASS and WINDLASS_DATA_DIR."""

import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

WINDLASS = os.environ["WINDLASS"]
DATA = pathlib.Path(os.environ["WINDLASS_DATA_DIR"])
ENVIRONMENT = {**os.environ, "WINDLASS_DATA_DIR": str(DATA)}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.name = f"test-{os.getpid()}-{self.id().rsplit('.', 1)[-1]}"

    def file(self, name, value):
        path = self.folder / name
        path.write_text(json.dumps(value))
        return str(path)

    def command(self, source, source_config, *more, delay_ms=0):
        to = {"path": str(self.folder / "out.db"), "delay_ms": delay_ms}
        return [
            WINDLASS, "sync", "run", "--json", "--name", self.name,
            "--source", source, "--source-config", self.file("source.json", source_config),
            "--destination", "destination-sqlite", "--destination-config", self.file("destination.json", to),
            *more,
        ]

    def sync(self, *args, **more):
        done = subprocess.run(self.command(*args, **more), env=ENVIRONMENT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def one(self, query):
        return sqlite3.connect(self.folder / "out.db").execute(query).fetchone()

    def book(self):
        path = DATA / "syncs" / self.name / "journal.json"
        return json.loads(path.read_text()) if path.exists() else {}


class Operations(Case):
    def test_spec_check_discover(self):
        def ask(*words):
            return subprocess.run([WINDLASS, "--json", "connector", *words], env=ENVIRONMENT, capture_output=True, text=True)

        spec = ask("spec", "source-faker")
        self.assertIn("count", json.loads(spec.stdout)["connectionSpecification"]["properties"])
        good, bad = self.file("good.json", {"count": 10}), self.file("bad.json", {"count": "many"})
        self.assertEqual(ask("check", "source-faker", "--config", good).returncode, 0)
        failed = ask("check", "source-faker", "--config", bad)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("check of the source failed", failed.stderr)
        streams = json.loads(ask("discover", "source-faker", "--config", good).stdout)["streams"]
        self.assertEqual({stream["name"] for stream in streams}, {"users", "products", "purchases"})


class Faker(Case):
    # With `always_updated` it sends everything in each sync; without, nothing once it has a state.
    CONFIG = {"count": 5000, "seed": 42, "parallelism": 1, "always_updated": False}
    ALWAYS = {**CONFIG, "always_updated": True}

    def counts(self):
        return [self.one(f"SELECT count(*), count(DISTINCT key) FROM {name}") for name in ("users", "products")]

    def test_exact_counts(self):
        summary = self.sync("source-faker", self.CONFIG)
        self.assertEqual(self.counts(), [(5000, 5000), (100, 100)])
        purchases = self.one("SELECT count(*), count(DISTINCT key) FROM purchases")
        by_name = {stream["name"]: stream for stream in summary["streams"]}
        self.assertEqual(by_name["users"]["recordsCommitted"], 5000)
        self.assertEqual(by_name["purchases"]["recordsCommitted"], purchases[0])
        self.assertEqual(purchases[0], purchases[1])
        self.assertEqual(summary["checksums"]["sourceMismatched"], 0)
        self.assertEqual(summary["checksums"]["destinationMismatched"], 0)
        self.assertGreater(summary["checksums"]["destinationCompared"], 5)
        # Nothing is new: the next syncs go on from the state of the first, and keep it.
        for sync in (2, 3):
            again = self.sync("source-faker", self.CONFIG)
            self.assertEqual((again["sync"], again["recordsEmitted"]), (sync, 0))
            self.assertEqual(len(again["state"]), 3)
        self.assertEqual(self.counts(), [(5000, 5000), (100, 100)])

    def test_killed_half_way_and_resumed(self):
        command = self.command("source-faker", self.ALWAYS, "--stream", "users", delay_ms=100)
        process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # The kit gives states back one by one: kill between two of them.
        deadline = time.monotonic() + 60
        while self.book().get("sequence", 0) < 2:
            self.assertIsNone(process.poll(), "the sync ended before it could be killed")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        committed = sum(stream["recordsCommitted"] for stream in self.book()["streams"])
        self.assertTrue(0 < committed < 5000, committed)
        summary = self.sync("source-faker", self.ALWAYS, "--stream", "users")
        self.assertEqual((summary["sync"], summary["attempt"]), (1, 1))
        self.assertEqual(self.one("SELECT count(*), count(DISTINCT key) FROM users"), (5000, 5000))
        # This source begins anew whatever its state says.
        self.assertEqual(summary["recordsCommitted"], 5000)


class HardcodedRecords(Case):
    def test_a_source_without_states(self):
        """Full refresh, overwrite: what was there goes when the new records are complete."""
        config = {"count": 20000}
        for sync in (1, 2):
            summary = self.sync("source-hardcoded-records", config, "--stream", "products", "--stream", "customers")
            self.assertEqual(summary["sync"], sync)
            self.assertEqual(summary["recordsCommitted"], 40000)
            for name in ("products", "customers"):
                self.assertEqual(self.one(f"SELECT count(*), min(generation), max(generation) FROM {name}"), (20000, sync, sync))

    def test_cleared(self):
        self.sync("source-hardcoded-records", {"count": 1000}, "--stream", "products")
        self.assertEqual(self.one("SELECT count(*) FROM products"), (1000,))
        self.sync("source-hardcoded-records", {"count": 1000}, "--stream", "products", "--clear")
        self.assertEqual(self.one("SELECT count(*) FROM products"), (0,))


class LocalFile(Case):
    def test_a_file_of_lines(self):
        table = self.folder / "table.csv"
        table.write_text("id,name\n" + "".join(f"{number},name {number}\n" for number in range(5000)))
        config = {"dataset_name": "t", "format": "csv", "url": str(table), "provider": {"storage": "local"}}
        summary = self.sync("source-file", config)
        self.assertEqual(summary["recordsCommitted"], 5000)
        self.assertEqual(self.one("SELECT count(*) FROM t"), (5000,))


if __name__ == "__main__":
    unittest.main()
