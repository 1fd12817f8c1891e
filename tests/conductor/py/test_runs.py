"""Workflows run and waited for, signalled, and run with made-up results."""

import time
import unittest

from conductor.client.http.models.start_workflow_request import StartWorkflowRequest
from conductor.client.http.models.workflow_test_request import WorkflowTestRequest

from windlass import (
    api, define, define_task, message, newest, nothing, refused, simple, shown, start, states, task, task_api,
    unique, until, until_task, workflows,
)


def request(name, given=None, **more):
    return StartWorkflowRequest(name=name, version=1, input=given or {}, **more)


class Runs(unittest.TestCase):
    def test_a_run_is_answered_with_its_end(self):
        name = define(unique("flow"), [task("SET_VARIABLE", "v", {"a": "${workflow.input.a}"})],
                      outputParameters={"b": "${workflow.variables.a}"})
        run = workflows.execute_workflow(request(name, {"a": 3}, correlation_id="c"), request_id="r")
        self.assertEqual((run.status, run.output, run.variables), ("COMPLETED", {"b": 3}, {"a": 3}))
        self.assertEqual((run.request_id, run.correlation_id, run.input), ("r", "c", {"a": 3}))
        self.assertEqual([(t.reference_task_name, t.status) for t in run.tasks], [("v", "COMPLETED")])
        self.assertEqual(shown(run.workflow_id)["status"], "COMPLETED")

    def test_a_run_is_answered_when_somebody_must_act(self):
        child = define(unique("child"), [task("WAIT", "hold", {"note": "n"})])
        name = define(unique("flow"), [
            task("SUB_WORKFLOW", "s", subWorkflowParam={"name": child, "version": 1}),
        ])

        def run(strategy):
            return workflows.execute_workflow_with_return_strategy(request(name), return_strategy=strategy)

        whole = run("TARGET_WORKFLOW")
        self.assertEqual((whole.response_type, whole.status), ("TARGET_WORKFLOW", "RUNNING"))
        self.assertEqual(whole.workflow_id, whole.target_workflow_id)
        below = run("BLOCKING_WORKFLOW")
        self.assertEqual((below.response_type, below.target_workflow_status), ("BLOCKING_WORKFLOW", "RUNNING"))
        self.assertNotEqual(below.workflow_id, below.target_workflow_id)
        self.assertEqual(below.tasks[0]["referenceTaskName"], "hold")
        blocking = run("BLOCKING_TASK")
        self.assertEqual((blocking.reference_task_name, blocking.task_type), ("hold", "WAIT"))
        self.assertEqual((blocking.workflow_type, blocking.status.value), (child, "IN_PROGRESS"))
        given = run("BLOCKING_TASK_INPUT")
        self.assertEqual((given.response_type, given.input), ("BLOCKING_TASK_INPUT", {"note": "n"}))

        # A signal to the workflow above completes what holds up the one below.
        said = task_api.signal_workflow_task_sync(
            blocking.target_workflow_id, "COMPLETED", {"x": 1}, return_strategy="TARGET_WORKFLOW",
        )
        self.assertEqual((said.target_workflow_status, said.output["x"]), ("COMPLETED", 1))
        self.assertEqual(
            message(404, task_api.signal_workflow_task_sync, blocking.target_workflow_id, "COMPLETED", {}),
            f"Found no blocked task in workflow {blocking.target_workflow_id} to signal",
        )

    def test_a_named_task_is_waited_for(self):
        name = define(unique("flow"), [
            task("NOOP", "first"), task("INLINE", "second", {"expression": "2", "evaluatorType": "javascript"}),
            simple(unique("never"), ref="never"),
        ])
        began = time.monotonic()
        run = workflows.execute_workflow(request(name), wait_until_task_ref="none,second", wait_for_seconds=9)
        self.assertLess(time.monotonic() - began, 5)
        self.assertEqual(run.status, "RUNNING")
        self.assertEqual([t.status for t in run.tasks], ["COMPLETED", "COMPLETED", "SCHEDULED"])

    def test_a_run_that_takes_longer_is_answered_as_it_stands(self):
        name = define(unique("flow"), [simple(unique("slow"), ref="slow")])
        began = time.monotonic()
        run = api("POST", f"/workflow/execute/{name}/0", {"input": {}}, waitForSeconds=1)
        self.assertGreaterEqual(time.monotonic() - began, 1)
        self.assertEqual((run["status"], run["signalTimeout"]), ("RUNNING", True))

    def test_what_cannot_be_run(self):
        none = unique("none")
        self.assertEqual(
            message(404, workflows.execute_workflow, request(none), request_id="r"),
            f"No such workflow defined. name={none}, version=1",
        )
        name = define(unique("flow"), [task("NOOP", "n")])
        self.assertIn("SOMETHING", message(
            500, workflows.execute_workflow_with_return_strategy, request(name), return_strategy="SOMETHING",
        ))

    def test_signals_wake_one_wait_after_the_other(self):
        workflow_id = start(define(unique("flow"), [task("WAIT", "a"), task("WAIT", "b"), task("WAIT", "c")]))
        until_task(workflow_id, "a")
        task_api.signal_workflow_task_async(workflow_id, "COMPLETED", {"n": 1})
        until_task(workflow_id, "b")
        run = task_api.signal_workflow_task_sync(
            workflow_id, "COMPLETED", {"n": 2}, return_strategy="BLOCKING_TASK",
        )
        self.assertEqual(run.reference_task_name, "c")
        run = task_api.signal_workflow_task_sync(workflow_id, "FAILED", {"n": 3})
        self.assertEqual(run.target_workflow_status, "FAILED")
        workflow = until(workflow_id, "FAILED")
        self.assertEqual([t["outputData"] for t in workflow["tasks"]], [{"n": 1}, {"n": 2}, {"n": 3}])
        # Nothing is held up any more: nothing is said.
        task_api.signal_workflow_task_async(workflow_id, "COMPLETED", {})
        refused(500, task_api.signal_workflow_task_async, workflow_id, "EXCELLENT", {})
        self.assertEqual(message(404, task_api.signal_workflow_task_async, "nobody", "COMPLETED", {}),
                         "No such workflow found by id: nobody")


class Mocks(unittest.TestCase):
    """The SDK's class for one result writes names that no server reads: a result is a plain object here."""

    def test_results_are_given_in_order(self):
        worker = define_task(unique("worker"), retryCount=2, retryDelaySeconds=0)
        name = define(unique("flow"), [simple(worker, ref="a"), task("WAIT", "w"), simple(worker, ref="b")],
                      outputParameters={"a": "${a.output.n}", "b": "${b.output.n}"})
        run = workflows.test_workflow(WorkflowTestRequest(name=name, version=1, input={}, task_ref_to_mock_output={
            "a": [{"status": "FAILED", "output": {}}, {"output": {"n": 1}, "executionTime": 5}],
            "w": [{"status": "COMPLETED", "output": {}}],
            "b": [{"status": "COMPLETED", "output": {"n": 2}}],
        }))
        self.assertEqual((run.status, run.output), ("COMPLETED", {"a": 1, "b": 2}))
        self.assertEqual(states(shown(run.workflow_id)), [
            ("a", "FAILED"), ("a", "COMPLETED"), ("w", "COMPLETED"), ("b", "COMPLETED"),
        ])
        nothing(worker)

    def test_workflows_below_have_results_of_their_own(self):
        child = define(unique("child"), [simple(unique("c"), ref="c")])
        name = define(unique("flow"), [task("SUB_WORKFLOW", "s", subWorkflowParam={"name": child, "version": 1})])
        run = workflows.test_workflow(WorkflowTestRequest(
            name=name, version=1, input={}, task_ref_to_mock_output={},
            sub_workflow_test_request={"s": WorkflowTestRequest(
                name=child, version=1, task_ref_to_mock_output={"c": [{"output": {"r": 1}}]},
            )},
        ))
        self.assertEqual(run.status, "COMPLETED")
        self.assertEqual(newest(shown(run.workflow_id), "s")["outputData"]["r"], 1)

    def test_without_a_result_a_test_stands_still(self):
        worker = unique("worker")
        name = define(unique("flow"), [simple(worker, ref="a")])
        run = workflows.test_workflow(
            WorkflowTestRequest(name=name, version=1, input={}, task_ref_to_mock_output={})
        )
        self.assertEqual((run.status, run.tasks[0].status), ("RUNNING", "SCHEDULED"))
        nothing(worker)

    def test_what_cannot_be_tested(self):
        none = unique("none")
        asked = WorkflowTestRequest(name=none, version=1, input={}, task_ref_to_mock_output={})
        self.assertIn(none, message(404, workflows.test_workflow, asked))
        refused(500, api, "POST", "/workflow/test", {"name": none, "taskRefToMockOutput": []})


if __name__ == "__main__":
    unittest.main()
