"""What scenarios share: channels, jobs as a process makes them, waiting."""

import asyncio
import json
import logging
import os
import time
import unittest
import urllib.parse
import urllib.request
import uuid

import grpc
from pyzeebe import create_insecure_channel
from pyzeebe.proto import gateway_pb2 as messages
from pyzeebe.proto.gateway_pb2_grpc import GatewayStub

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


ONE_TASK = """<b:definitions xmlns:b="http://www.omg.org/spec/BPMN/20100524/MODEL"
    xmlns:z="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="http://windlass.dev/scenarios">
  <b:process id="TYPE" isExecutable="true">
    <b:startEvent id="start"/>
    <b:serviceTask id="task"><b:extensionElements>
      <z:taskDefinition type="TYPE" retries="RETRIES"/>
    </b:extensionElements></b:serviceTask>
    <b:endEvent id="end"/>
    <b:sequenceFlow id="in" sourceRef="start" targetRef="task"/>
    <b:sequenceFlow id="out" sourceRef="task" targetRef="end"/>
  </b:process>
</b:definitions>"""


def create_job(job_type, variables=None, retries=3):
    """An instance that makes one job; answers the job's key, which our own API tells, so that
    nobody has to take it."""
    with grpc.insecure_channel(ADDRESS) as channel:
        stub = GatewayStub(channel)
        process = ONE_TASK.replace("TYPE", job_type).replace("RETRIES", str(retries)).encode()
        file = messages.Resource(name=f"{job_type}.bpmn", content=process)
        stub.DeployResource(messages.DeployResourceRequest(resources=[file]))
        stub.CreateProcessInstance(
            messages.CreateProcessInstanceRequest(
                bpmnProcessId=job_type, version=-1, variables=json.dumps(variables or {})
            )
        )
    query = urllib.parse.urlencode({"tenant": "<default>", "queue": f"zeebe/{job_type}"})
    jobs = call("GET", f"/jobs?{query}")["jobs"]
    return max((int(job["key"]) for job in jobs), default=None)


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
