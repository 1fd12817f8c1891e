"""Definitions of workflows and tasks: written, read, listed, refused, forgotten."""

import unittest

from conductor.client.http.models.task_def import TaskDef
from conductor.client.http.models.workflow_def import WorkflowDef
from conductor.client.http.models.workflow_task import WorkflowTask

from windlass import (
    VALIDATION, api, define, define_task, finish, message, metadata, metadata_api, poll, refused,
    sentences, shown, simple, start, task, unique, until,
)


def noop(ref="n"):
    return WorkflowTask(name=ref, task_reference_name=ref, type="NOOP")


class WorkflowDefinitions(unittest.TestCase):
    def test_versions_come_and_go(self):
        name = unique("versions")

        def version(number):
            return WorkflowDef(name=name, version=number, tasks=[noop()], description=f"v{number}")

        metadata.register_workflow_def(version(1), overwrite=False)
        self.assertEqual(
            message(409, metadata.register_workflow_def, version(1), overwrite=False),
            f"Workflow with {name}.1 already exists!",
        )
        metadata.register_workflow_def(version(1), overwrite=True)
        metadata.update_workflow_def(version(2))
        metadata.update_workflow_def(version(10))

        self.assertEqual(metadata.get_workflow_def(name).version, 10)
        second = metadata.get_workflow_def(name, 2)
        self.assertEqual((second.version, second.description), (2, "v2"))
        self.assertEqual(second.tasks[0].task_reference_name, "n")
        self.assertGreater(second.create_time, 0)
        all_of_it = [one.version for one in metadata.get_all_workflow_defs() if one.name == name]
        self.assertEqual(sorted(all_of_it), [1, 2, 10])

        self.assertIn(name, api("GET", "/metadata/workflow/names"))
        versions = api("GET", f"/metadata/workflow/{name}/versions")
        self.assertEqual([one["version"] for one in versions], [1, 2, 10])
        self.assertEqual(set(versions[0]), {"name", "version", "createTime", "updateTime"})
        self.assertEqual(api("GET", "/metadata/workflow/names-and-versions")[name], versions)
        latest = [one for one in api("GET", "/metadata/workflow/latest-versions") if one["name"] == name]
        self.assertEqual([one["version"] for one in latest], [10])

        metadata.unregister_workflow_def(name, 10)
        self.assertEqual(metadata.get_workflow_def(name).version, 2)
        self.assertEqual(
            message(404, metadata.unregister_workflow_def, name, 10),
            f"No such workflow definition: {name} version: 10",
        )
        self.assertEqual(
            message(404, metadata.get_workflow_def, name, 10),
            f"No such workflow found by name: {name}, version: 10",
        )
        self.assertEqual(
            message(404, metadata.get_workflow_def, unique("none"))[:33],
            "No such workflow found by name: n",
        )

    def test_every_field_comes_back(self):
        given = {
            "name": unique("whole"), "version": 3, "description": "d", "schemaVersion": 2,
            "tasks": [simple(unique("t"), inputParameters={"x": "${workflow.input.x}", "n": None})],
            "inputParameters": ["x"], "outputParameters": {"y": "${workflow.input.x}"},
            "inputTemplate": {"x": 1}, "variables": {"v": [1, {"w": None}]}, "restartable": False,
            "ownerEmail": "owner@example.org", "timeoutSeconds": 60, "timeoutPolicy": "TIME_OUT_WF",
            "failureWorkflow": "mourn", "failureWorkflowVersion": 2, "metadata": {"team": "a"},
            "workflowStatusListenerEnabled": True, "workflowStatusListenerSink": "s",
            "rateLimitConfig": {"rateLimitKey": "k", "concurrentExecLimit": 2, "policy": "QUEUE"},
            "enforceSchema": False, "maskedFields": ["x"], "cacheConfig": {"key": "k", "ttlInSecond": 5},
        }
        metadata_api.create(given)
        read = api("GET", f"/metadata/workflow/{given['name']}", version=3)
        for field, value in given.items():
            if field != "tasks":
                self.assertEqual(read[field], value, field)
        # What is null in a map stays.
        self.assertEqual(read["tasks"][0]["inputParameters"], given["tasks"][0]["inputParameters"])

    def test_a_list_is_taken_whole_or_not_at_all(self):
        good, bad = unique("good"), unique("bad")
        body = [
            {"name": good, "version": 1, "tasks": [task("NOOP", "n")]},
            {"name": bad, "version": 1, "tasks": []},
        ]
        self.assertEqual(
            sentences(metadata_api.update1, body), ["WorkflowTask list cannot be empty"]
        )
        refused(404, metadata.get_workflow_def, good)
        taken = api("PUT", "/metadata/workflow", body[:1] * 2)
        self.assertEqual(taken, {
            "bulkErrorResults": {}, "bulkSuccessfulResults": [good, good],
            "message": "Bulk Request has been processed.",
        })

    def test_what_is_wrong_is_said(self):
        name = unique("wrong")
        fork = {"name": "f", "taskReferenceName": "f", "type": "FORK_JOIN", "forkTasks": [[task("NOOP", "n")]]}
        for tasks, sentence in [
            ([task("NOOP", "n"), task("NOOP", "n")],
             f"taskReferenceName: n should be unique across tasks for a given workflowDefinition: {name}"),
            ([task("NOOP", "n", {"x": "${nobody.output.x}"})], "is not defined in workflow definition."),
            ([fork], "FORK_JOIN task f must be followed by a JOIN"),
            ([task("TERMINATE", "t")], "terminationStatus"),
            ([task("WAIT", "w", {"duration": "1s", "until": "2030-01-01"})], "Both 'duration' and 'until'"),
            ([task("DYNAMIC", "d")], "dynamicTaskNameParam should not be null or empty"),
            ([task("EVENT", "e")], "sink should not be null or empty"),
            ([], "WorkflowTask list cannot be empty"),
        ]:
            body = {"name": name, "version": 1, "tasks": tasks}
            for function in (
                lambda: metadata_api.create(body),
                lambda: api("POST", "/metadata/workflow/validate", body),
            ):
                self.assertIn(sentence, "\n".join(sentences(function)))
        refused(404, metadata.get_workflow_def, name)

    def test_validation_keeps_nothing(self):
        name = unique("tried")
        api("POST", "/metadata/workflow/validate", {"name": name, "tasks": [task("NOOP", "n")]})
        refused(404, metadata.get_workflow_def, name)

    def test_a_running_workflow_keeps_its_definition(self):
        old, new = unique("old"), unique("new")
        name = define(unique("changes"), [simple(old)])
        running = start(name)
        define(name, [simple(new)])
        self.assertEqual(shown(running)["workflowDefinition"]["tasks"][0]["name"], old)
        later = start(name)
        finish(poll(old))
        until(running, "COMPLETED")
        self.assertEqual(poll(new)["workflowInstanceId"], later)


class TaskDefinitions(unittest.TestCase):
    def test_they_come_and_go(self):
        name = unique("task")
        wanted = TaskDef(name=name, retry_count=7, timeout_policy="RETRY", retry_logic="LINEAR_BACKOFF")
        self.assertEqual(message(404, metadata.update_task_def, wanted), f"No such task by name {name}")
        metadata.register_task_def(wanted)
        read = metadata.get_task_def(name)
        self.assertEqual((read.retry_count, read.timeout_policy), (7, "RETRY"))
        self.assertEqual((read.retry_logic, read.response_timeout_seconds), ("LINEAR_BACKOFF", 3600))
        metadata.update_task_def(TaskDef(name=name, retry_count=1))
        self.assertEqual(metadata.get_task_def(name).retry_count, 1)
        self.assertIn(name, [one.name for one in metadata.get_all_task_defs()])
        metadata.unregister_task_def(name)
        self.assertEqual(
            message(404, metadata.get_task_def, name), f"No such taskType found by name: {name}"
        )
        self.assertEqual(message(404, metadata.unregister_task_def, name), "No such task definition")

    def test_what_is_not_said_has_its_default(self):
        read = api("GET", f"/metadata/taskdefs/{define_task(unique('bare'))}")
        defaults = {
            "retryCount": 3, "retryLogic": "FIXED", "retryDelaySeconds": 60, "backoffScaleFactor": 1,
            "timeoutSeconds": 0, "totalTimeoutSeconds": 0, "timeoutPolicy": "TIME_OUT_WF",
            "responseTimeoutSeconds": 3600, "rateLimitPerFrequency": 0, "rateLimitFrequencyInSeconds": 1,
            "inputKeys": [], "outputKeys": [], "inputTemplate": {}, "enforceSchema": False,
        }
        self.assertEqual({field: read.get(field) for field in defaults}, defaults)
        self.assertNotIn("concurrentExecLimit", read)
        self.assertNotIn("pollTimeoutSeconds", read)

    def test_every_field_comes_back(self):
        given = {
            "name": unique("whole"), "description": "d", "ownerEmail": "owner@example.org",
            "retryCount": 4, "retryLogic": "EXPONENTIAL_BACKOFF", "retryDelaySeconds": 2,
            "backoffScaleFactor": 3, "maxRetryDelaySeconds": 9, "backoffJitterMs": 50,
            "timeoutSeconds": 20, "totalTimeoutSeconds": 30, "timeoutPolicy": "ALERT_ONLY",
            "responseTimeoutSeconds": 10, "pollTimeoutSeconds": 5, "concurrentExecLimit": 6,
            "rateLimitPerFrequency": 7, "rateLimitFrequencyInSeconds": 8, "inputTemplate": {"a": None},
            "inputKeys": ["a"], "outputKeys": ["b"], "isolationGroupId": "i", "executionNameSpace": "e",
            "enforceSchema": False, "inputSchema": {"name": "s", "version": 1, "type": "JSON"},
        }
        metadata_api.register_task_def([given])
        read = api("GET", f"/metadata/taskdefs/{given['name']}")
        self.assertEqual({field: read.get(field) for field in given}, given)

    def test_what_is_wrong_is_said(self):
        name = unique("wrong")
        for fields, sentence in [
            ({"name": ""}, "TaskDef name cannot be null or empty"),
            ({"retryCount": -1}, "retryCount: -1 must be >= 0"),
            ({"backoffScaleFactor": 0}, "must be >= 1"),
            ({"maxRetryDelaySeconds": -1}, "maxRetryDelaySeconds must be >= 0"),
            ({"timeoutSeconds": 5, "responseTimeoutSeconds": 9}, "must be less than timeoutSeconds: 5"),
            ({"timeoutSeconds": 9, "responseTimeoutSeconds": 5, "totalTimeoutSeconds": 8},
             "must be less than or equal to totalTimeoutSeconds"),
        ]:
            body = {"name": name, **fields}
            for function in (
                lambda: metadata_api.register_task_def([body]),
                lambda: metadata_api.update_task_def(body),
            ):
                self.assertIn(sentence, "\n".join(sentences(function)))
        refused(404, metadata.get_task_def, name)
        self.assertEqual(VALIDATION, message(400, metadata_api.register_task_def, [{"name": ""}]))
        # A list is wanted.
        self.assertIn("JSON parse error", message(500, metadata_api.register_task_def, {"name": name}))


if __name__ == "__main__":
    unittest.main()
