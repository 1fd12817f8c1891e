"""What scenarios share: clients, definitions, waiting. All requests but those of `call` are the SDK's."""

import json
import os
import time
import uuid

from conductor.client.configuration.configuration import Configuration
from conductor.client.http.api.event_resource_api import EventResourceApi
from conductor.client.http.api.workflow_bulk_resource_api import WorkflowBulkResourceApi
from conductor.client.http.api_client import ApiClient
from conductor.client.http.models.start_workflow_request import StartWorkflowRequest
from conductor.client.http.models.task_result import TaskResult
from conductor.client.http.rest import ApiException
from conductor.client.orkes_clients import OrkesClients
import requests

import calls

URL = os.environ["CONDUCTOR_SERVER_URL"]
configuration = Configuration(server_api_url=URL, log_level="ERROR")
clients = OrkesClients(configuration=configuration)
workflows = clients.get_workflow_client()
tasks = clients.get_task_client()
metadata = clients.get_metadata_client()
scheduler = clients.get_scheduler_client()
api_client = workflows.api_client
# The generated clients, for what the ones above leave out.
workflow_api = workflows.workflowResourceApi
task_api = tasks.taskResourceApi
metadata_api = metadata.metadataResourceApi
scheduler_api = scheduler.schedulerResourceApi
bulk_api = WorkflowBulkResourceApi(api_client)
event_api = EventResourceApi(api_client)
# What stands beside `/api`.
beside = ApiClient(Configuration(server_api_url=URL.removesuffix("/api")))

TERMINAL = {"COMPLETED", "FAILED", "TERMINATED", "TIMED_OUT"}
VALIDATION = "Validation failed, check below errors for detail."


def unique(name):
    """A name that no other scenario uses."""
    return f"{name}_{uuid.uuid4().hex[:8]}"


def call(method, path, status=None, **kwargs):
    """A request as no SDK makes it."""
    answer = requests.request(method, URL + path, timeout=30, **kwargs)
    if status is not None:
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
    return answer


def api(method, path, body=None, /, client=api_client, **query):
    """A request by the SDK for which it has no method, or whose answer is wanted as JSON."""
    return client.call_api(
        path, method, query_params=list(query.items()), body=body,
        header_params={"Accept": "application/json"}, response_type="object",
        _return_http_data_only=True,
    )


def refused(status, function, *args, **kwargs):
    """The body of the error with which a request must fail."""
    try:
        answer = function(*args, **kwargs)
    except ApiException as error:
        assert error.status == status, f"{error.status}, not {status}: {error.body}"
        body = json.loads(error.body)
        assert body["status"] == status and body["instance"], body
        assert isinstance(body["retryable"], bool) and body["message"], body
        return body
    raise AssertionError(f"not refused: {answer}")


def message(status, function, *args, **kwargs):
    """The sentence with which a request must fail."""
    return refused(status, function, *args, **kwargs)["message"]


def sentences(function, *args, **kwargs):
    """What is wrong with the parts of a request."""
    body = refused(400, function, *args, **kwargs)
    assert body["message"] == VALIDATION, body
    return [problem["message"] for problem in body["validationErrors"]]


def simple(name, **more):
    return {"name": name, "taskReferenceName": more.pop("ref", name), "type": "SIMPLE", **more}


def task(kind, ref, given=None, **more):
    return {"name": ref, "taskReferenceName": ref, "type": kind, "inputParameters": given or {}, **more}


def define(name, task_list, **more):
    body = {"name": name, "version": 1, "schemaVersion": 2, "tasks": task_list, **more}
    metadata_api.create(body, overwrite=True)
    if body.get("timeoutSeconds"):
        calls.note(f"TIME workflow {body.get('timeoutPolicy', 'ALERT_ONLY')}")
    return name


def define_task(name, **more):
    metadata_api.register_task_def([{"name": name, **more}])
    calls.note(f"RETRY {more.get('retryLogic', 'FIXED')}")
    for field in more:
        if field.lower().endswith("timeoutseconds"):
            calls.note(f"TIME {field} {more.get('timeoutPolicy', 'TIME_OUT_WF')}")
    return name


def start(name, given=None, **more):
    request = StartWorkflowRequest(name=name, input=given or {}, **more)
    return workflows.start_workflow(request)


def shown(workflow_id):
    workflow = api("GET", f"/workflow/{workflow_id}", includeTasks="true")
    for one in workflow["tasks"]:
        calls.note(f"TASK {one['workflowTask']['type']} {one['status']}")
    return workflow


def poll(task_type, wait=5.0, **params):
    """The next task of a type, as JSON."""
    end = time.monotonic() + wait
    asked = {"workerid": "w", "count": 1, "timeout": 500, **params}
    while time.monotonic() < end:
        found = api("GET", f"/tasks/poll/batch/{task_type}", **asked)
        if found:
            return found[0]
    raise AssertionError(f"no task of type {task_type}")


def nothing(task_type, timeout=100):
    found = api("GET", f"/tasks/poll/batch/{task_type}", timeout=timeout)
    assert found == [], found


def result(task, status="COMPLETED", output=None, **more):
    return TaskResult(
        workflow_instance_id=task["workflowInstanceId"],
        task_id=task["taskId"],
        status=status,
        output_data=output or {},
        worker_id="w",
        **more,
    )


def finish(task, status="COMPLETED", output=None, **more):
    return tasks.update_task(result(task, status, output, **more))


def eventually(look, wait=10.0):
    """The first answer that says something."""
    end = time.monotonic() + wait
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, f"in {wait} s: {found!r}"
        time.sleep(0.02)


def until(workflow_id, *statuses, wait=10.0):
    """The workflow once it has one of these statuses; any end when none is named."""
    wanted = set(statuses) or TERMINAL
    end = time.monotonic() + wait
    while True:
        workflow = shown(workflow_id)
        if workflow["status"] in wanted:
            return workflow
        if time.monotonic() > end:
            raise AssertionError(f"{workflow['status']}, not {wanted}: {states(workflow)}")
        time.sleep(0.02)


def until_task(workflow_id, ref, status="IN_PROGRESS", wait=10.0):
    """The workflow once its newest task of this name has a status."""
    def look():
        workflow = shown(workflow_id)
        return workflow if dict(states(workflow)).get(ref) == status else None

    return eventually(look, wait)


def newest(workflow, ref):
    """The newest task of this name."""
    return [one for one in workflow["tasks"] if one["referenceTaskName"] == ref][-1]


def states(workflow):
    return [(t["referenceTaskName"], t["status"]) for t in workflow["tasks"]]
