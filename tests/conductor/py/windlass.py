"""What scenarios share: clients, definitions, waiting."""

import os
import time
import uuid

from conductor.client.configuration.configuration import Configuration
from conductor.client.http.models.start_workflow_request import StartWorkflowRequest
from conductor.client.http.models.task_result import TaskResult
from conductor.client.orkes_clients import OrkesClients
import requests

URL = os.environ["CONDUCTOR_SERVER_URL"]
configuration = Configuration(server_api_url=URL)
clients = OrkesClients(configuration=configuration)
workflows = clients.get_workflow_client()
tasks = clients.get_task_client()
metadata = clients.get_metadata_client()
TERMINAL = {"COMPLETED", "FAILED", "TERMINATED", "TIMED_OUT"}


def unique(name):
    """A name that no other scenario uses."""
    return f"{name}_{uuid.uuid4().hex[:8]}"


def call(method, path, status=None, **kwargs):
    """A request as no SDK makes it."""
    answer = requests.request(method, URL + path, timeout=30, **kwargs)
    if status is not None:
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
    return answer


def simple(name, **more):
    return {"name": name, "taskReferenceName": more.pop("ref", name), "type": "SIMPLE", **more}


def define(name, task_list, **more):
    body = {"name": name, "version": 1, "schemaVersion": 2, "tasks": task_list, **more}
    call("POST", "/metadata/workflow?overwrite=true", 200, json=body)
    return name


def define_task(name, **more):
    call("POST", "/metadata/taskdefs", 200, json=[{"name": name, **more}])
    return name


def start(name, given=None, **more):
    request = StartWorkflowRequest(name=name, input=given or {}, **more)
    return workflows.start_workflow(request)


def shown(workflow_id):
    return call("GET", f"/workflow/{workflow_id}?includeTasks=true", 200).json()


def poll(task_type, wait=5.0, **params):
    """The next task of a type, as JSON."""
    end = time.monotonic() + wait
    while time.monotonic() < end:
        found = call(
            "GET",
            f"/tasks/poll/batch/{task_type}",
            200,
            params={"workerid": "w", "count": 1, "timeout": 500, **params},
        ).json()
        if found:
            return found[0]
    raise AssertionError(f"no task of type {task_type}")


def nothing(task_type, timeout=100):
    found = call("GET", f"/tasks/poll/batch/{task_type}", 200, params={"timeout": timeout}).json()
    assert found == [], found


def finish(task, status="COMPLETED", output=None, **more):
    result = TaskResult(
        workflow_instance_id=task["workflowInstanceId"],
        task_id=task["taskId"],
        status=status,
        output_data=output or {},
        worker_id="w",
        **more,
    )
    return tasks.update_task(result)


def until(workflow_id, *statuses, wait=10.0):
    """The workflow once it has one of these statuses; any end when none is named."""
    wanted = set(statuses) or TERMINAL
    end = time.monotonic() + wait
    while True:
        workflow = shown(workflow_id)
        if workflow["status"] in wanted:
            return workflow
        if time.monotonic() > end:
            states = [(t["referenceTaskName"], t["status"]) for t in workflow["tasks"]]
            raise AssertionError(f"{workflow['status']}, not {wanted}: {states}")
        time.sleep(0.02)


def states(workflow):
    return [(t["referenceTaskName"], t["status"]) for t in workflow["tasks"]]
