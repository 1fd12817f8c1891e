"""Workflows started in every way, read in every way, and told apart from what is not there."""

import unittest
import uuid

from conductor.client.http.models.correlation_ids_search_request import CorrelationIdsSearchRequest
from conductor.client.http.models.start_workflow_request import IdempotencyStrategy
from conductor.client.http.models.workflow_state_update import WorkflowStateUpdate
from conductor.client.http.models.task_result import TaskResult

from windlass import (
    api, define, finish, message, poll, refused, shown, simple, start, states, task, unique, until,
    until_task, workflow_api, workflows,
)

# An id of nothing.
NOBODY = str(uuid.UUID(int=0xAB))


class Starts(unittest.TestCase):
    def test_every_way_to_start(self):
        name = define(unique("starts"), [task("HUMAN", "h")])
        given = {"k": [1, None, {"x": "ü"}]}
        asked = {"correlationId": "c/1", "priority": 42}
        ids = [
            start(name, given, version=1, correlation_id="c/1", priority=42),
            workflows.start_workflow_by_name(name, given, version=1, correlationId="c/1", priority=42),
            api("POST", f"/workflow/start/{name}", given, **asked),
            api("POST", f"/workflow/start/{name}/1", given, **asked),
        ]
        self.assertEqual(len(set(ids)), 4)
        for workflow_id in ids:
            self.assertEqual(str(uuid.UUID(workflow_id)), workflow_id)
            found = shown(workflow_id)
            self.assertEqual((found["workflowName"], found["workflowVersion"]), (name, 1))
            self.assertEqual((found["input"], found["correlationId"]), (given, "c/1"))
            self.assertEqual((found["priority"], found["status"]), (42, "RUNNING"))

    def test_the_newest_version_is_the_default(self):
        name = define(unique("two"), [task("HUMAN", "h")])
        define(name, [task("HUMAN", "h")], version=2)
        for way, version in [
            (lambda: start(name), 2),
            (lambda: start(name, version=1), 1),
            (lambda: workflows.start_workflow_by_name(name, {}), 2),
            (lambda: api("POST", f"/workflow/start/{name}"), 2),
            (lambda: api("POST", f"/workflow/start/{name}/1"), 1),
        ]:
            self.assertEqual(shown(way())["workflowVersion"], version)

    def test_a_definition_comes_with_the_start(self):
        name = unique("brought")
        definition = {"name": name, "version": 1, "tasks": [task("SET_VARIABLE", "v", {"a": "${workflow.input.a}"})]}
        workflow_id = api("POST", "/workflow", {"name": name, "workflowDef": definition, "input": {"a": 5}})
        self.assertEqual(until(workflow_id, "COMPLETED")["variables"], {"a": 5})
        self.assertIn("No such workflow defined", message(404, start, name))

    def test_what_cannot_be_started(self):
        none, name = unique("none"), define(unique("there"), [task("NOOP", "n")])
        self.assertEqual(
            message(404, start, none), f"No such workflow defined. name={none}, version=null"
        )
        self.assertEqual(
            message(404, start, name, version=9), f"No such workflow defined. name={name}, version=9"
        )
        by_name = f"No such workflow found by name: {none}, version: null"
        self.assertEqual(message(404, workflows.start_workflow_by_name, none, {}), by_name)
        self.assertEqual(message(404, api, "POST", f"/workflow/start/{none}"), by_name)
        refused(404, api, "POST", f"/workflow/start/{name}/9")
        self.assertIn("between 0 and 99", message(400, start, name, priority=100))
        self.assertEqual(
            message(400, api, "POST", "/workflow", {"name": name, "input": None}),
            "NULL input passed when starting workflow",
        )
        self.assertEqual(
            message(400, api, "POST", "/workflow", {"input": {}}), "Workflow name cannot be null or empty"
        )

    def test_a_key_is_taken_once(self):
        name, key = define(unique("once"), [task("HUMAN", "h")]), unique("key")

        def again(strategy, **more):
            return start(name, idempotency_key=key, idempotency_strategy=strategy, **more)

        first = again(IdempotencyStrategy.FAIL)
        self.assertIn(key, message(409, again, IdempotencyStrategy.FAIL))
        self.assertEqual(again(IdempotencyStrategy.RETURN_EXISTING), first)
        refused(409, again, "FAIL_ON_RUNNING")
        self.assertEqual(shown(first)["idempotencyKey"], key)
        workflows.terminate_workflow(first)
        self.assertNotEqual(again("FAIL_ON_RUNNING"), first)


class Reads(unittest.TestCase):
    def test_a_workflow_is_read(self):
        first, second = unique("first"), unique("second")
        name = define(
            unique("read"), [simple(first, ref="a"), simple(second, ref="b")],
            variables={"v": 1}, outputParameters={"r": "${a.output.r}"},
        )
        workflow_id = start(name, {"i": 1}, correlation_id="c")
        finish(poll(first), output={"r": 2})

        whole = workflows.get_workflow(workflow_id, include_tasks=True)
        self.assertEqual((whole.status, whole.workflow_name, whole.input), ("RUNNING", name, {"i": 1}))
        self.assertEqual([(t.reference_task_name, t.status) for t in whole.tasks],
                         [("a", "COMPLETED"), ("b", "SCHEDULED")])
        self.assertEqual([t.seq for t in whole.tasks], [1, 2])
        self.assertEqual(whole.tasks[0].output_data, {"r": 2})
        self.assertGreater(whole.create_time, 0)
        self.assertEqual(workflow_api.get_execution_status(workflow_id, include_tasks=False).tasks, [])

        status = workflows.get_workflow_status(workflow_id, include_output=True, include_variables=True)
        self.assertEqual((status.workflow_id, status.correlation_id), (workflow_id, "c"))
        self.assertEqual((status.status, status.variables), ("RUNNING", {"v": 1}))
        short = api("GET", f"/workflow/{workflow_id}/status")
        self.assertEqual(set(short), {"workflowId", "correlationId", "status"})

        page = api("GET", f"/workflow/{workflow_id}/tasks", start=1, count=1)
        self.assertEqual((page["totalHits"], page["results"][0]["referenceTaskName"]), (2, "b"))
        page = api("GET", f"/workflow/{workflow_id}/tasks", status="COMPLETED")
        self.assertEqual([t["referenceTaskName"] for t in page["results"]], ["a"])
        self.assertEqual(api("GET", f"/workflow/{workflow_id}/tasks", status="FAILED")["results"], [])

        finish(poll(second))
        until(workflow_id, "COMPLETED")
        status = workflows.get_workflow_status(workflow_id, include_output=True, include_variables=False)
        self.assertEqual((status.status, status.output), ("COMPLETED", {"r": 2}))

    def test_what_is_not_there(self):
        for nobody in (NOBODY, "no-id"):
            gone = f"No such workflow found by id: {nobody}"
            for function in (
                lambda: workflows.get_workflow(nobody),
                lambda: workflows.get_workflow_status(nobody),
                lambda: api("GET", f"/workflow/{nobody}/tasks"),
                lambda: workflow_api.decide(nobody),
                lambda: workflows.pause_workflow(nobody),
                lambda: workflows.resume_workflow(nobody),
                lambda: workflows.restart_workflow(nobody),
                lambda: workflows.retry_workflow(nobody),
                lambda: workflow_api.reset_workflow(nobody),
                lambda: workflows.terminate_workflow(nobody, "r"),
                lambda: workflows.delete_workflow(nobody),
                lambda: api("POST", f"/workflow/{nobody}/rerun", {}),
                lambda: api("PUT", f"/workflow/{nobody}/skiptask/a", {}),
                lambda: api("DELETE", f"/workflow/{nobody}/terminate-remove"),
                lambda: workflows.update_variables(nobody, {"a": 1}),
                lambda: workflows.update_state(nobody, WorkflowStateUpdate(variables={"a": 1})),
            ):
                self.assertEqual(message(404, function), gone)

    def test_correlation_ids(self):
        one, two = define(unique("one"), [task("HUMAN", "h")]), define(unique("two"), [task("HUMAN", "h")])
        near, far = unique("near"), unique("far")
        first = start(one, correlation_id=near)
        second = start(one, correlation_id=near)
        other = start(two, correlation_id=near)
        lone = start(one, correlation_id=far)

        def ids(found):
            return {workflow.workflow_id for workflow in found}

        self.assertEqual(ids(workflow_api.get_workflows2(one, near)), {first, second})
        found = workflows.get_by_correlation_ids(one, [near, far, "none"], include_tasks=True)
        self.assertEqual({key: ids(value) for key, value in found.items()},
                         {near: {first, second}, far: {lone}, "none": set()})
        self.assertEqual(len(found[far][0].tasks), 1)
        batch = CorrelationIdsSearchRequest(correlation_ids=[near], workflow_names=[one, two])
        found = workflows.get_by_correlation_ids_in_batch(batch)
        self.assertEqual(ids(found[near]), {first, second, other})
        self.assertEqual(found[near][0].tasks, [])

        self.assertEqual(set(workflow_api.get_running_workflow(one)), {first, second, lone})
        self.assertEqual(workflow_api.get_running_workflow(one, version=2), [])
        self.assertEqual(workflow_api.get_running_workflow(one, start_time=1, end_time=2), [])
        workflows.terminate_workflow(first)
        self.assertEqual(ids(workflow_api.get_workflows2(one, near)), {second})
        closed = workflow_api.get_workflows2(one, near, include_closed=True, include_tasks=True)
        self.assertEqual(ids(closed), {first, second})
        self.assertNotIn(first, workflow_api.get_running_workflow(one))

    def test_payloads_are_kept_inside(self):
        asked = {"path": "p", "operation": "WRITE", "payloadType": "WORKFLOW_INPUT"}
        for path in ("externalstoragelocation", "external-storage-location"):
            self.assertEqual(api("GET", f"/workflow/{path}", **asked), {"uri": "", "path": ""})
            self.assertIn("operation", message(500, api, "GET", f"/workflow/{path}", path="p"))


class State(unittest.TestCase):
    def test_variables_are_set_from_outside(self):
        workflow_id = start(define(unique("flow"), [task("HUMAN", "h"), task("SET_VARIABLE", "v", {
            "sum": "${workflow.variables.a}-${workflow.variables.b}",
        })], variables={"a": 0}))
        workflows.update_variables(workflow_id, {"a": 1, "b": 2})
        answer = api("POST", f"/workflow/{workflow_id}/variables", {"b": 3})
        self.assertEqual((answer["workflowId"], answer["variables"]), (workflow_id, {"a": 1, "b": 3}))
        api("POST", f"/tasks/{workflow_id}/h/COMPLETED", {})
        self.assertEqual(until(workflow_id, "COMPLETED")["variables"]["sum"], "1-3")
        self.assertIn("has ended", message(409, workflows.update_variables, workflow_id, {"a": 2}))

    def test_a_task_and_variables_at_once(self):
        name = unique("worker")
        workflow_id = start(define(unique("flow"), [simple(name, ref="t"), task("WAIT", "w")]))
        done = TaskResult(workflow_instance_id=workflow_id, task_id="t", status="COMPLETED", output_data={"o": 1})
        change = WorkflowStateUpdate(task_reference_name="t", task_result=done, variables={"v": 2})
        run = workflows.update_state(workflow_id, change, wait_until_task_ref_names=["w"], wait_for_seconds=5)
        self.assertEqual((run.workflow_id, run.status, run.variables), (workflow_id, "RUNNING", {"v": 2}))
        workflow = until_task(workflow_id, "w")
        self.assertEqual(workflow["tasks"][0]["outputData"], {"o": 1})
        self.assertEqual(
            message(404, workflows.update_state, workflow_id, change),
            f"Found no running task t of workflow {workflow_id} to update",
        )

    def test_a_decision_changes_nothing_that_is_decided(self):
        workflow_id = start(define(unique("flow"), [task("HUMAN", "h")]))
        before = until_task(workflow_id, "h")
        workflow_api.decide(workflow_id)
        after = shown(workflow_id)
        self.assertEqual((states(after), after["status"]), (states(before), "RUNNING"))


if __name__ == "__main__":
    unittest.main()
