"""Workflows paused, resumed, terminated, restarted, retried, rerun, skipped, removed; one and many."""

import unittest

from conductor.client.http.models.rerun_workflow_request import RerunWorkflowRequest
from conductor.client.http.models.skip_task_request import SkipTaskRequest

from windlass import (
    api, bulk_api, define, define_task, finish, message, newest, nothing, poll, refused, shown, simple, start,
    states, task, unique, until, until_task, workflow_api, workflows,
)


def sub(ref, name, **more):
    return task("SUB_WORKFLOW", ref, subWorkflowParam={"name": name, "version": 1}, **more)


def failing(**more):
    """A worker whose failure is final at once."""
    return define_task(unique("fails"), retryCount=0, **more)


class One(unittest.TestCase):
    def test_a_pause_holds_what_is_not_scheduled_yet(self):
        a, b = unique("a"), unique("b")
        workflow_id = start(define(unique("flow"), [simple(a), simple(b)]))
        self.assertEqual(
            message(500, workflows.resume_workflow, workflow_id),
            f"The workflow {workflow_id} is not PAUSED so cannot resume. Current status is RUNNING",
        )
        workflows.pause_workflow(workflow_id)
        workflows.pause_workflow(workflow_id)
        self.assertEqual(shown(workflow_id)["status"], "PAUSED")
        finish(poll(a))
        nothing(b)
        self.assertEqual(shown(workflow_id)["status"], "PAUSED")
        workflows.resume_workflow(workflow_id)
        finish(poll(b))
        until(workflow_id, "COMPLETED")
        self.assertEqual(
            message(409, workflows.pause_workflow, workflow_id),
            f"Workflow {workflow_id} has ended, status cannot be updated.",
        )

    def test_a_termination_cancels_all_below(self):
        child = define(unique("child"), [task("HUMAN", "h")])
        workflow_id = start(define(unique("flow"), [sub("s", child)]))
        below = newest(until_task(workflow_id, "s"), "s")["subWorkflowId"]
        until_task(below, "h")
        workflows.terminate_workflow(workflow_id, "enough of it")
        workflow = until(workflow_id, "TERMINATED")
        self.assertEqual(workflow["reasonForIncompletion"], "enough of it")
        self.assertEqual(states(workflow), [("s", "CANCELED")])
        child = until(below, "TERMINATED")
        self.assertEqual(
            child["reasonForIncompletion"], "Parent workflow has been terminated with reason: enough of it"
        )
        workflows.terminate_workflow(workflow_id, "again")
        self.assertEqual(shown(workflow_id)["reasonForIncompletion"], "enough of it")
        done = start(define(unique("flow"), [task("NOOP", "n")]))
        until(done, "COMPLETED")
        self.assertEqual(
            message(409, workflows.terminate_workflow, done), "Cannot terminate a COMPLETED workflow."
        )

    def test_a_restart_begins_anew(self):
        old, new = unique("old"), unique("new")
        name = define(unique("flow"), [simple(old)], outputParameters={"by": "old"})
        workflow_id = start(name, {"x": 1})
        refused(409, workflows.restart_workflow, workflow_id)
        first = poll(old)
        finish(first)
        until(workflow_id, "COMPLETED")
        define(name, [simple(new)], outputParameters={"by": "new"})
        workflows.restart_workflow(workflow_id)
        again = poll(old)
        self.assertEqual(again["workflowInstanceId"], workflow_id)
        self.assertNotEqual(again["taskId"], first["taskId"])
        finish(again)
        self.assertEqual(until(workflow_id, "COMPLETED")["output"], {"by": "old"})
        workflows.restart_workflow(workflow_id, use_latest_def=True)
        finish(poll(new))
        workflow = until(workflow_id, "COMPLETED")
        self.assertEqual((workflow["output"], workflow["input"]), ({"by": "new"}, {"x": 1}))
        self.assertEqual(len(workflow["tasks"]), 1)

    def test_what_must_not_be_restarted(self):
        name = define(unique("flow"), [task("NOOP", "n")], restartable=False)
        workflow_id = start(name)
        until(workflow_id, "COMPLETED")
        self.assertIn("non-restartable", message(404, workflows.restart_workflow, workflow_id))

    def test_a_retry_does_the_failed_task_again(self):
        a, b = unique("a"), failing()
        workflow_id = start(define(unique("flow"), [simple(a), simple(b, ref="b")]))
        self.assertIn(
            "Workflow is still running.", message(404, workflows.retry_workflow, workflow_id)
        )
        finish(poll(a))
        finish(poll(b), "FAILED", reason_for_incompletion="broken")
        failed = until(workflow_id, "FAILED")
        self.assertIn("broken", failed["reasonForIncompletion"])
        self.assertEqual(failed["failedReferenceTaskNames"], ["b"])
        workflows.retry_workflow(workflow_id)
        again = poll(b)
        self.assertEqual((again["retryCount"], again["retriedTaskId"]), (1, newest(failed, "b")["taskId"]))
        finish(again)
        workflow = until(workflow_id, "COMPLETED")
        self.assertEqual([s for _, s in states(workflow)], ["COMPLETED", "FAILED", "COMPLETED"])
        self.assertIn(
            "There are no retryable tasks!", message(409, workflows.retry_workflow, workflow_id)
        )

    def test_a_retry_below_revives_those_above(self):
        b = failing()
        child = define(unique("child"), [simple(b)])
        workflow_id = start(define(unique("flow"), [sub("s", child)]))
        finish(poll(b), "FAILED")
        failed = until(workflow_id, "FAILED")
        below = newest(failed, "s")["subWorkflowId"]
        workflows.retry_workflow(workflow_id, resume_subworkflow_tasks=True)
        finish(poll(b))
        workflow = until(workflow_id, "COMPLETED")
        self.assertEqual(newest(workflow, "s")["subWorkflowId"], below)
        self.assertEqual(shown(below)["status"], "COMPLETED")

    def test_a_rerun_from_a_task_and_from_the_start(self):
        a, b = unique("a"), unique("b")
        workflow_id = start(define(unique("flow"), [simple(a, ref="a"), simple(b, ref="b")]), {"x": 1})
        request = RerunWorkflowRequest(re_run_from_task_id="no-task")
        refused(409, workflows.rerun_workflow, workflow_id, request)
        finish(poll(a), output={"n": 1})
        second = poll(b)
        finish(second)
        until(workflow_id, "COMPLETED")
        self.assertEqual(
            message(400, workflows.rerun_workflow, workflow_id, request), "Task no-task not found"
        )
        request = RerunWorkflowRequest(re_run_from_task_id=second["taskId"], task_input={"again": True})
        self.assertEqual(workflows.rerun_workflow(workflow_id, request), workflow_id)
        again = poll(b)
        self.assertEqual(again["inputData"], {"again": True})
        self.assertEqual(shown(workflow_id)["tasks"][0]["outputData"], {"n": 1})
        finish(again)
        until(workflow_id, "COMPLETED")
        request = RerunWorkflowRequest(workflow_input={"x": 2}, correlation_id="c")
        workflows.rerun_workflow(workflow_id, request)
        finish(poll(a))
        finish(poll(b))
        workflow = until(workflow_id, "COMPLETED")
        self.assertEqual((workflow["input"], workflow["correlationId"]), ({"x": 2}, "c"))

    def test_a_task_is_skipped(self):
        a, d = unique("a"), unique("d")
        workflow_id = start(define(unique("flow"), [
            simple(a, ref="a"), simple(unique("b"), ref="b"), simple(unique("c"), ref="c"), simple(d, ref="d"),
        ]))
        given = {"taskInput": {"i": 1}, "taskOutput": {"o": 2}}
        api("PUT", f"/workflow/{workflow_id}/skiptask/b", given)
        # The SDK's own method sends what it is given where no server looks for it.
        skip, empty = workflows.skip_task_from_workflow, SkipTaskRequest()
        skip(workflow_id, "c", empty)
        self.assertIn("has already been processed", message(500, skip, workflow_id, "a", empty))
        self.assertIn("nobody", message(500, skip, workflow_id, "nobody", empty))
        finish(poll(a))
        finish(poll(d))
        workflow = until(workflow_id, "COMPLETED")
        skipped = [newest(workflow, ref) for ref in ("b", "c")]
        self.assertEqual([(t["status"], t["inputData"], t["outputData"]) for t in skipped],
                         [("SKIPPED", {"i": 1}, {"o": 2}), ("SKIPPED", {}, {})])
        self.assertIn("is not running", message(500, skip, workflow_id, "d", empty))

    def test_callbacks_are_reset(self):
        name = unique("later")
        workflow_id = start(define(unique("flow"), [simple(name)]))
        finish(poll(name), "IN_PROGRESS", callback_after_seconds=300)
        nothing(name)
        workflow_api.reset_workflow(workflow_id)
        finish(poll(name))
        until(workflow_id, "COMPLETED")
        self.assertEqual(
            message(409, workflow_api.reset_workflow, workflow_id),
            "Workflow is in terminal state. Status = COMPLETED",
        )

    def test_removal(self):
        name = define(unique("flow"), [task("HUMAN", "h")])
        first, second, third = start(name), start(name), start(name)
        self.assertEqual(
            message(400, workflows.delete_workflow, first),
            f"Cannot archive workflow: {first} with status: RUNNING",
        )
        workflows.terminate_workflow(first)
        workflows.delete_workflow(first)
        workflows.delete_workflow(second, archive_workflow=False)
        api("DELETE", f"/workflow/{third}/terminate-remove", reason="r")
        for gone in (first, second, third):
            self.assertEqual(
                message(404, workflows.get_workflow, gone), f"No such workflow found by id: {gone}"
            )
            refused(404, workflows.delete_workflow, gone)

    def test_a_failure_starts_another_workflow(self):
        b = failing()
        mourn = define(unique("mourn"), [task("NOOP", "n")])
        workflow_id = start(define(unique("flow"), [simple(b)], failureWorkflow=mourn), {"x": 1})
        finish(poll(b), "FAILED", reason_for_incompletion="broken")
        failed = until(workflow_id, "FAILED")
        given = until(failed["output"]["conductor.failure_workflow"], "COMPLETED")["input"]
        self.assertEqual((given["workflowId"], given["failureStatus"], given["x"]), (workflow_id, "FAILED", 1))
        self.assertIn("broken", given["reason"])
        self.assertEqual(given["failureTaskId"], failed["tasks"][0]["taskId"])


class Many(unittest.TestCase):
    MESSAGE = "Bulk Request has been processed."

    def setUp(self):
        self.worker = failing()
        self.name = define(unique("many"), [simple(self.worker)])
        self.ids = [start(self.name) for _ in range(3)]
        self.unknown = {"nobody": "No such workflow found by id: nobody"}

    def check(self, answer, errors=None):
        """All of ours succeeded, and the one that is not there did not."""
        if not isinstance(answer, dict):
            answer = {"bulkErrorResults": answer.bulk_error_results, "message": answer.message,
                      "bulkSuccessfulResults": answer.bulk_successful_results}
        succeeded = [] if errors else self.ids
        wanted = {"bulkErrorResults": {**self.unknown, **(errors or {})}, "message": self.MESSAGE,
                  "bulkSuccessfulResults": succeeded}
        self.assertEqual(answer, wanted)

    def each(self, sentence):
        return {workflow_id: sentence.replace("ID", workflow_id) for workflow_id in self.ids}

    def test_paused_and_resumed(self):
        asked = [*self.ids, "nobody"]
        self.check(bulk_api.resume_workflow(asked),
                   self.each("The workflow ID is not PAUSED so cannot resume. Current status is RUNNING"))
        self.check(bulk_api.pause_workflow(asked))
        for workflow_id in self.ids:
            self.assertEqual(shown(workflow_id)["status"], "PAUSED")
        self.check(bulk_api.resume_workflow(asked))
        for workflow_id in self.ids:
            self.assertEqual(shown(workflow_id)["status"], "RUNNING")

    def test_terminated_restarted_and_retried(self):
        asked = [*self.ids, "nobody"]
        self.check(bulk_api.terminate(asked, reason="all of you"))
        for workflow_id in self.ids:
            self.assertEqual(until(workflow_id, "TERMINATED")["reasonForIncompletion"], "all of you")
        self.check(bulk_api.restart(asked, use_latest_definitions=True))
        for _ in self.ids:
            finish(poll(self.worker), "FAILED")
        for workflow_id in self.ids:
            until(workflow_id, "FAILED")
        self.check(bulk_api.retry(asked))
        for _ in self.ids:
            finish(poll(self.worker))
        for workflow_id in self.ids:
            until(workflow_id, "COMPLETED")
        self.check(bulk_api.terminate(asked), self.each("Cannot terminate a COMPLETED workflow."))
        self.check(bulk_api.pause_workflow(asked), self.each("Workflow ID has ended, status cannot be updated."))

    def test_found_and_removed(self):
        asked = [*self.ids, "nobody"]
        found = api("POST", "/workflow/bulk/search", asked, includeTasks="true")
        self.assertEqual([w["workflowId"] for w in found["bulkSuccessfulResults"]], self.ids)
        self.assertEqual(len(found["bulkSuccessfulResults"][0]["tasks"]), 1)
        self.assertEqual(found["bulkErrorResults"], self.unknown)
        short = api("POST", "/workflow/bulk/search", asked, includeTasks="false")
        self.assertEqual(short["bulkSuccessfulResults"][0]["tasks"], [])
        self.check(api("DELETE", "/workflow/bulk/remove", asked),
                   self.each("Cannot archive workflow: ID with status: RUNNING"))
        self.check(api("DELETE", "/workflow/bulk/remove", asked, archiveWorkflow="false"))
        for workflow_id in self.ids:
            refused(404, workflows.get_workflow, workflow_id)

    def test_ended_and_removed(self):
        self.check(api("DELETE", "/workflow/bulk/terminate-remove", [*self.ids, "nobody"], reason="r"))
        for workflow_id in self.ids:
            refused(404, workflows.get_workflow, workflow_id)

    def test_deleted_as_another_client_says_it(self):
        bulk_api.terminate(self.ids)
        self.check(api("POST", "/workflow/bulk/delete", [*self.ids, "nobody"]))

    def test_there_is_a_limit(self):
        for method, verb in [("PUT", "pause"), ("POST", "search"), ("DELETE", "remove")]:
            many = ["nobody"] * 1_001
            body = refused(400, api, method, f"/workflow/bulk/{verb}", many)
            self.assertIn("1000", body["validationErrors"][0]["message"])


if __name__ == "__main__":
    unittest.main()
