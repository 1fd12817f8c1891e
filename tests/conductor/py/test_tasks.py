"""Tasks of workers: polls, results, retries, timeouts, limits, domains, logs."""

import time
import unittest

from conductor.client.automator.task_handler import TaskHandler
from conductor.client.worker.worker import Worker

from windlass import (
    call, configuration, define, define_task, finish, metadata, nothing, poll, shown, simple, start,
    states, tasks, unique, until,
)


def add_one(task):
    """A worker's function: it runs in a process of its own."""
    return {"n": task.input_data["n"] + 1}


class Tasks(unittest.TestCase):
    def test_a_worker_of_the_sdk_runs_a_workflow(self):
        names = [unique(f"step{n}") for n in range(3)]
        flow = define(
            unique("flow"),
            [simple(name, inputParameters={"n": "${workflow.input.n}"}) for name in names],
            outputParameters={"last": f"${{{names[-1]}.output.n}}"},
        )
        workers = [
            Worker(
                task_definition_name=name,
                execute_function=add_one,
                poll_interval=0.05,
            )
            for name in names
        ]
        handler = TaskHandler(workers, configuration, scan_for_annotated_workers=False)
        handler.start_processes()
        try:
            ids = [start(flow, {"n": n}) for n in range(10)]
            for n, workflow_id in enumerate(ids):
                workflow = until(workflow_id, "COMPLETED", wait=30)
                self.assertEqual(workflow["output"], {"last": n + 1})
                self.assertEqual(len(workflow["tasks"]), 3)
        finally:
            handler.stop_processes()

    def test_a_batch_is_answered_as_soon_as_there_is_one(self):
        name = unique("early")
        start(define(unique("flow"), [simple(name)]))
        began = time.monotonic()
        found = call("GET", f"/tasks/poll/batch/{name}?count=10&timeout=4000", 200).json()
        self.assertEqual(len(found), 1)
        self.assertLess(time.monotonic() - began, 1)

    def test_polls_with_nothing(self):
        name = unique("nothing")
        self.assertEqual(call("GET", f"/tasks/poll/{name}", 204).content, b"")
        self.assertEqual(call("GET", f"/tasks/poll/batch/{name}", 200).json(), [])
        refused = call("GET", f"/tasks/poll/batch/{name}?timeout=5001", 400).json()
        self.assertIn("cannot be more than 5 seconds", refused["message"])
        self.assertIn("retryable", refused)

    def test_update_v2_gives_the_next_task(self):
        name = unique("chain")
        flow = define(unique("flow"), [simple(name, ref="a"), simple(name, ref="b")])
        workflow_id = start(flow)
        first = poll(name)
        body = {
            "workflowInstanceId": workflow_id, "taskId": first["taskId"], "status": "COMPLETED",
            "workerId": "w", "outputData": {},
        }
        second = call("POST", "/tasks/update-v2", 200, json=body).json()
        self.assertEqual(second["referenceTaskName"], "b")
        self.assertEqual(second["status"], "IN_PROGRESS")
        body["taskId"] = second["taskId"]
        call("POST", "/tasks/update-v2", 204, json=body)
        until(workflow_id, "COMPLETED")

    def test_a_failure_is_tried_again_and_then_ends_the_workflow(self):
        name = define_task(unique("fails"), retryCount=1, retryDelaySeconds=1)
        workflow_id = start(define(unique("flow"), [simple(name)]))
        finish(poll(name), "FAILED", reason_for_incompletion="one")
        began = time.monotonic()
        again = poll(name)
        self.assertGreater(time.monotonic() - began, 0.8)
        self.assertEqual(again["retryCount"], 1)
        self.assertTrue(again["retriedTaskId"])
        finish(again, "FAILED", reason_for_incompletion="two")
        workflow = until(workflow_id, "FAILED")
        self.assertEqual([s for _, s in states(workflow)], ["FAILED", "FAILED"])
        self.assertIn("two", workflow["reasonForIncompletion"])
        self.assertEqual(workflow["failedReferenceTaskNames"], [name])

    def test_a_terminal_error_is_not_tried_again(self):
        name = define_task(unique("dead"), retryCount=3, retryDelaySeconds=0)
        workflow_id = start(define(unique("flow"), [simple(name)]))
        finish(poll(name), "FAILED_WITH_TERMINAL_ERROR")
        until(workflow_id, "FAILED")

    def test_a_silent_worker_times_out(self):
        name = define_task(
            unique("silent"), retryCount=1, retryDelaySeconds=0, responseTimeoutSeconds=1,
            timeoutSeconds=0,
        )
        workflow_id = start(define(unique("flow"), [simple(name)]))
        poll(name)
        began = time.monotonic()
        again = poll(name)
        self.assertLess(time.monotonic() - began, 2.5)
        self.assertEqual(again["retryCount"], 1)
        self.assertEqual(states(shown(workflow_id))[0][1], "TIMED_OUT")

    def test_a_heartbeat_keeps_the_task(self):
        name = define_task(
            unique("alive"), retryCount=0, responseTimeoutSeconds=1, timeoutSeconds=0
        )
        workflow_id = start(define(unique("flow"), [simple(name)]))
        task = poll(name)
        for _ in range(4):
            time.sleep(0.5)
            finish(task, "IN_PROGRESS", extend_lease=True)
        finish(task)
        until(workflow_id, "COMPLETED")

    def test_poll_timeout_ends_the_workflow(self):
        name = define_task(
            unique("unseen"), pollTimeoutSeconds=1, timeoutPolicy="TIME_OUT_WF", retryCount=0
        )
        workflow_id = start(define(unique("flow"), [simple(name)]))
        workflow = until(workflow_id, "TIMED_OUT", wait=5)
        self.assertIn("poll timed out", workflow["tasks"][0]["reasonForIncompletion"])

    def test_a_put_back_task_comes_again_later(self):
        name = unique("later")
        workflow_id = start(define(unique("flow"), [simple(name)]))
        task = poll(name)
        finish(task, "IN_PROGRESS", {"half": True}, callback_after_seconds=1)
        nothing(name)
        again = poll(name)
        self.assertEqual(again["taskId"], task["taskId"])
        self.assertEqual(again["pollCount"], 2)
        self.assertEqual(again["outputData"], {"half": True})
        finish(again)
        until(workflow_id, "COMPLETED")

    def test_limits_hold_and_release_at_once(self):
        name = define_task(unique("few"), concurrentExecLimit=2)
        flow = define(unique("flow"), [simple(name)])
        for _ in range(4):
            start(flow)
        held = [poll(name), poll(name)]
        nothing(name)
        finish(held[0])
        began = time.monotonic()
        poll(name)
        self.assertLess(time.monotonic() - began, 0.5)
        nothing(name)

    def test_a_rate_limit_holds_in_its_window(self):
        name = define_task(
            unique("rated"), rateLimitPerFrequency=2, rateLimitFrequencyInSeconds=2
        )
        flow = define(unique("flow"), [simple(name)])
        for _ in range(3):
            start(flow)
        poll(name)
        poll(name)
        began = time.monotonic()
        nothing(name, timeout=500)
        poll(name)
        self.assertGreater(time.monotonic() - began, 1.0)

    def test_domains(self):
        name = unique("domained")
        flow = define(unique("flow"), [simple(name)])
        workflow_id = start(flow, task_to_domain={"*": "blue"})
        nothing(name)
        finish(poll(name, domain="blue"))
        until(workflow_id, "COMPLETED")

    def test_logs(self):
        name = unique("talks")
        start(define(unique("flow"), [simple(name)]))
        task = poll(name)
        call("GET", f"/tasks/{task['taskId']}/log", 204)
        tasks.add_task_log(task["taskId"], "hello")
        lines = call("GET", f"/tasks/{task['taskId']}/log", 200).json()
        self.assertIn("hello", lines[0]["log"])
        self.assertEqual(lines[0]["taskId"], task["taskId"])

    def test_results_that_make_no_sense(self):
        name = unique("strange")
        workflow_id = start(define(unique("flow"), [simple(name)]))
        task = poll(name)
        base = {"workflowInstanceId": workflow_id, "taskId": task["taskId"], "status": "COMPLETED"}
        for body, status in [
            ({**base, "workflowInstanceId": None}, 400),
            ({**base, "taskId": ""}, 400),
            ({**base, "workflowInstanceId": "no"}, 404),
            ({**base, "taskId": "no"}, 404),
            ({**base, "status": "EXCELLENT"}, 500),
        ]:
            refused = call("POST", "/tasks", status, json=body).json()
            self.assertEqual(refused["status"], status)
            self.assertTrue(refused["message"])
        finish(task)
        # What has ended stays as it is, and nobody is told off.
        answer = call("POST", "/tasks", 200, json={**base, "status": "FAILED"})
        self.assertEqual(answer.text, task["taskId"])
        until(workflow_id, "COMPLETED")

    def test_queue_sizes_and_poll_data(self):
        name = unique("queued")
        flow = define(unique("flow"), [simple(name)])
        for _ in range(3):
            start(flow)
        size = call("GET", f"/tasks/queue/size?taskType={name}", 200).json()
        self.assertEqual(size, 3)
        self.assertEqual(call("GET", f"/tasks/queue/sizes?taskType={name}", 200).json(), {name: 3})
        poll(name)
        data = call("GET", f"/tasks/queue/polldata?taskType={name}", 200).json()
        self.assertEqual(data[0]["workerId"], "w")
        self.assertIn(name, call("GET", "/tasks/queue/all", 200).json())

    def test_definitions_round_trip(self):
        name = define_task(unique("known"), retryCount=5, description="x", inputKeys=["a"])
        read = metadata.get_task_def(name)
        self.assertEqual(read["retryCount"] if isinstance(read, dict) else read.retry_count, 5)
        whole = call("GET", f"/metadata/taskdefs/{name}", 200).json()
        self.assertEqual(whole["responseTimeoutSeconds"], 3600)
        self.assertEqual(whole["inputKeys"], ["a"])
        call("PUT", "/metadata/taskdefs", 404, json={"name": unique("no")})
        bad = {"name": unique("bad"), "timeoutSeconds": 5, "responseTimeoutSeconds": 10}
        refused = call("POST", "/metadata/taskdefs", 400, json=[bad]).json()
        self.assertTrue(refused["message"])
        call("DELETE", f"/metadata/taskdefs/{name}", 200)
        call("GET", f"/metadata/taskdefs/{name}", 404)
        call("DELETE", f"/metadata/taskdefs/{name}", 404)


if __name__ == "__main__":
    unittest.main()
