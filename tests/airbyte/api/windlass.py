"""What scenarios share: clients, things to work with, and a worker that plays the launcher."""

import os
import threading
import time
import uuid

import airbyte_api
import requests
from airbyte_api import api, errors, models

URL = os.environ["WINDLASS_URL"]
API = URL + "/api/public/v1"
WORKSPACE = "00000000-0000-4000-8000-000000000001"

client = airbyte_api.AirbyteAPI(
    server_url=API, security=models.Security(bearer_auth="anything")
)


def unique(name):
    """A name that no other scenario uses."""
    return f"{name}-{uuid.uuid4().hex[:8]}"


def call(method, path, status=None, **kwargs):
    """A request as no SDK makes it."""
    answer = requests.request(method, API + path, timeout=30, **kwargs)
    if status is not None:
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
    return answer


def native(method, path, status=200, **kwargs):
    """A request to the engine's own API."""
    answer = requests.request(method, URL + "/windlass/v1" + path, timeout=30, **kwargs)
    assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
    return answer


def workspace():
    """A new one, so that no other scenario is in the way."""
    request = models.WorkspaceCreateRequest(name=unique("workspace"))
    return client.workspaces.create_workspace(request).workspace_response.workspace_id


def source(at=WORKSPACE, **more):
    request = models.SourceCreateRequest(
        name=unique("source"),
        workspace_id=at,
        configuration=models.SourceFaker(count=10, **more),
    )
    return client.sources.create_source(request).source_response


def destination(at=WORKSPACE):
    """One whose connector is a command of this machine, which only this API can say."""
    body = {"name": "Dev Null", "launch": {"kind": "command", "command": ["true"]}}
    call("POST", f"/workspaces/{at}/definitions/destinations", 200, json=body)
    request = models.DestinationCreateRequest(
        name=unique("destination"),
        workspace_id=at,
        configuration=models.DestinationDevNull(test_destination=models.Silent()),
    )
    return client.destinations.create_destination(request).destination_response


def connection(at=WORKSPACE, **more):
    request = models.ConnectionCreateRequest(
        source_id=source(at).source_id,
        destination_id=destination(at).destination_id,
        name=unique("connection"),
        **more,
    )
    return client.connections.create_connection(request).connection_response


def sync(connection_id):
    request = models.JobCreateRequest(
        connection_id=connection_id, job_type=models.JobTypeEnum.SYNC
    )
    return client.jobs.create_job(request).job_response


def job(job_id):
    return client.jobs.get_job(api.GetJobRequest(job_id=job_id)).job_response


def until(job_id, status, wait=20.0):
    """The job, once it has this status."""
    end = time.monotonic() + wait
    while True:
        found = job(job_id)
        if found.status.value == status:
            return found
        assert time.monotonic() < end, f"job {job_id} is {found.status}, not {status}"
        time.sleep(0.02)


def refused(call_it, status):
    """The problem with which something is refused."""
    try:
        call_it()
    except errors.SDKError as error:
        assert error.status_code == status, f"{error.status_code}: {error.body}"
        return error.raw_response.json()
    raise AssertionError("it was not refused")


class Launcher:
    """Takes jobs of queues and does with each what it is told; runs beside the test."""

    def __init__(self, *queues, do):
        self.queues, self.do, self.failure = queues, do, None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join(timeout=10)
        if self.failure:
            raise self.failure

    def run(self):
        try:
            while not self.over.is_set():
                for taken in take(*self.queues, wait_ms=200):
                    self.do(taken)
        except Exception as error:  # told to the test
            self.failure = error


def take(*queues, wait_ms=10_000):
    body = {"queues": list(queues), "jobs_max": 1, "wait_ms": wait_ms, "worker": "launcher"}
    return native("POST", "/jobs/activate", json=body).json()["jobs"]


def complete(taken, result=None, documents=()):
    body = {
        "activation": taken["activation"], "result": result or {}, "documents": list(documents),
    }
    native("POST", f"/jobs/{taken['key']}/complete", 204, json=body)


def fail(taken, progressed=False, permanent=False, message="the source said no"):
    body = {
        "activation": taken["activation"], "message": message, "progressed": progressed,
        "permanent": permanent,
    }
    native("POST", f"/jobs/{taken['key']}/fail", 204, json=body)


def counted(taken, records, size):
    """What a runner writes about an attempt."""
    connection_id = taken["payload"]["connectionId"]
    return {
        "kind": "airbyte.attempt",
        "id": f"{connection_id}.{taken['key']}-{taken['attempt']}",
        "value": {
            "connectionId": connection_id, "jobId": int(taken["key"]),
            "attempt": taken["attempt"], "status": "succeeded", "updatedAt": 1,
            "totals": {"recordsCommitted": records, "bytesCommitted": size},
        },
    }
