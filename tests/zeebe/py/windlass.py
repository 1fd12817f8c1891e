"""What scenarios share: channels, jobs made over our own API until processes make them, waiting."""

import asyncio
import json
import logging
import os
import time
import unittest
import urllib.parse
import urllib.request
import uuid

from pyzeebe import create_insecure_channel

BASE = os.environ["WINDLASS_URL"]
ADDRESS = os.environ["ZEEBE_ADDRESS"]
PATIENCE_S = 10

# Failing jobs are what some scenarios are about.
logging.getLogger("pyzeebe").setLevel(logging.CRITICAL)
logging.getLogger("asyncio").setLevel(logging.ERROR)


def unique(name):
    """A name that no other scenario uses."""
    return f"{name}-{uuid.uuid4()}"


def call(method, path, body=None):
    request = urllib.request.Request(
        f"{BASE}/windlass/v1{path}",
        method=method,
        headers={"content-type": "application/json"},
        data=None if body is None else json.dumps(body).encode(),
    )
    with urllib.request.urlopen(request) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def create_job(job_type, variables=None, **job):
    """A job as a process would make it; answers its key."""
    queue, tenant = f"zeebe/{job_type}", "<default>"
    path = f"/queues/{urllib.parse.quote(queue, safe='')}?tenant={urllib.parse.quote(tenant)}"
    call("PUT", path, {"order": "creation"})
    new = {"tenant": tenant, "queue": queue, "type": job_type, "payload": variables or {}, **job}
    return int(call("POST", "/jobs", new)["key"])


def job_view(key):
    """The job as our own API shows it."""
    return call("GET", f"/jobs/{key}")


async def until(check, what="it"):
    """Waits until `check` answers something true, and answers that."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = check()
        if found:
            return found
        await asyncio.sleep(0.01)
    raise AssertionError(f"{what} did not happen within {PATIENCE_S} s")


class Scenario(unittest.IsolatedAsyncioTestCase):
    """A test with a channel."""

    async def asyncSetUp(self):
        self.channel = create_insecure_channel(grpc_address=ADDRESS)

    async def asyncTearDown(self):
        await self.channel.close()
