"""Retries and timeouts: every logic, every policy, for tasks and for workflows, in seconds as short as they come."""

import time
import unittest

from windlass import (
    define, define_task, eventually, finish, newest, nothing, poll, refused, shown, simple, start, states, task,
    unique, until, workflows,
)

# How late a timer may be, and how early: times are told in whole milliseconds.
LATE, EARLY = 1.5, 0.05


class Timed(unittest.TestCase):
    def begin(self, ref="t", workflow=None, use=None, **definition):
        """A workflow of one task with this definition."""
        self.name = define_task(unique("timed"), **definition)
        flow = define(unique("flow"), [simple(self.name, ref=ref, **(use or {}))], **(workflow or {}))
        return start(flow)

    def took(self, seconds, work):
        began = time.monotonic()
        result = work()
        passed = time.monotonic() - began
        self.assertGreater(passed, seconds - EARLY)
        self.assertLess(passed, seconds + LATE)
        return result


def a_second_passes():
    """Waits for a timeout of a second: all that was begun before has had its own."""
    clock = define(unique("clock"), [task("HUMAN", "h")], timeoutSeconds=1, timeoutPolicy="TIME_OUT_WF")
    until(start(clock), "TIMED_OUT")


class Retries(Timed):
    def fail_for(self, *delays):
        """Fails, and sees the next attempt after each of these delays."""
        for number, delay in enumerate(delays, start=1):
            finish(poll(self.name), "FAILED", reason_for_incompletion=f"attempt {number}")
            again = self.took(delay, lambda: poll(self.name))
            self.assertEqual((again["retryCount"], again["startDelayInSeconds"]), (number, int(delay)))
            self.assertEqual(again["pollCount"], 1)
            finish(again, "IN_PROGRESS")

    def test_fixed(self):
        workflow_id = self.begin(retryCount=2, retryLogic="FIXED", retryDelaySeconds=1)
        self.fail_for(1, 1)
        finish(poll(self.name), "FAILED", reason_for_incompletion="the last")
        workflow = until(workflow_id, "FAILED")
        self.assertEqual([t["retryCount"] for t in workflow["tasks"]], [0, 1, 2])
        self.assertEqual([t["retried"] for t in workflow["tasks"]], [True, True, False])
        ids = [t["taskId"] for t in workflow["tasks"]]
        self.assertEqual([t.get("retriedTaskId") for t in workflow["tasks"]], [None, *ids[:2]])
        self.assertIn("the last", workflow["reasonForIncompletion"])

    def test_linear(self):
        self.begin(retryCount=3, retryLogic="LINEAR_BACKOFF", retryDelaySeconds=1, backoffScaleFactor=1)
        self.fail_for(1, 2)

    def test_linear_with_a_scale(self):
        self.begin(retryCount=3, retryLogic="LINEAR_BACKOFF", retryDelaySeconds=1, backoffScaleFactor=2)
        self.fail_for(2)

    def test_exponential_with_a_cap(self):
        self.begin(retryCount=9, retryLogic="EXPONENTIAL_BACKOFF", retryDelaySeconds=1, maxRetryDelaySeconds=2)
        self.fail_for(1, 2, 2)

    def test_jitter_comes_on_top(self):
        self.begin(retryCount=1, retryDelaySeconds=0, backoffJitterMs=300)
        finish(poll(self.name), "FAILED")
        self.took(0, lambda: poll(self.name))

    def test_the_use_of_a_task_has_its_own_count(self):
        workflow_id = self.begin(retryCount=5, retryDelaySeconds=0, use={"retryCount": 0})
        finish(poll(self.name), "FAILED")
        self.assertEqual(states(until(workflow_id, "FAILED")), [("t", "FAILED")])
        workflow_id = self.begin(retryCount=0, use={"retryCount": 1, "taskDefinition": {
            "name": "inline", "retryDelaySeconds": 0}})
        finish(poll(self.name), "FAILED")
        finish(poll(self.name))
        until(workflow_id, "COMPLETED")

    def test_what_is_final_is_not_tried_again(self):
        workflow_id = self.begin(retryCount=5, retryDelaySeconds=0)
        finish(poll(self.name), "FAILED_WITH_TERMINAL_ERROR")
        self.assertEqual(states(until(workflow_id, "FAILED")), [("t", "FAILED_WITH_TERMINAL_ERROR")])

    def test_a_start_may_be_delayed(self):
        self.begin(use={"startDelay": 1})
        one = self.took(1, lambda: poll(self.name))
        self.assertEqual(one["startDelayInSeconds"], 1)


class TaskTimeouts(Timed):
    """For each timeout what each policy makes of it."""

    def ends(self, workflow_id, reason):
        """The workflow timed out with its task, for this reason."""
        workflow = self.took(1, lambda: until(workflow_id, "TIMED_OUT"))
        self.assertEqual(states(workflow), [("t", "TIMED_OUT")])
        self.assertIn(reason, workflow["tasks"][0]["reasonForIncompletion"])
        self.assertIn(reason, workflow["reasonForIncompletion"])

    def is_retried(self, workflow_id, reason):
        again = self.took(1, lambda: poll(self.name))
        self.assertEqual(again["retryCount"], 1)
        first = shown(workflow_id)["tasks"][0]
        self.assertEqual(first["status"], "TIMED_OUT")
        self.assertIn(reason, first["reasonForIncompletion"])
        finish(again)
        until(workflow_id, "COMPLETED")

    def outlasts(self, workflow_id):
        """Nothing becomes of it when its time has passed."""
        a_second_passes()
        self.assertEqual(shown(workflow_id)["status"], "RUNNING")

    def test_task_timeout_ends_the_workflow(self):
        workflow_id = self.begin(timeoutSeconds=1, responseTimeoutSeconds=1, timeoutPolicy="TIME_OUT_WF", retryCount=3)
        finish(poll(self.name), "IN_PROGRESS", callback_after_seconds=60)
        self.ends(workflow_id, "Timeout configured as 1 seconds. Timeout policy configured to TIME_OUT_WF")

    def test_task_timeout_is_retried(self):
        workflow_id = self.begin(timeoutSeconds=1, responseTimeoutSeconds=1, timeoutPolicy="RETRY",
                                 retryCount=1, retryDelaySeconds=0)
        finish(poll(self.name), "IN_PROGRESS", callback_after_seconds=60)
        self.is_retried(workflow_id, "Timeout policy configured to RETRY")

    def test_task_timeout_is_only_told(self):
        workflow_id = self.begin(timeoutSeconds=1, responseTimeoutSeconds=1, timeoutPolicy="ALERT_ONLY")
        one = poll(self.name)
        finish(one, "IN_PROGRESS", callback_after_seconds=60)
        self.outlasts(workflow_id)
        finish(one)
        until(workflow_id, "COMPLETED")

    def test_poll_timeout_ends_the_workflow(self):
        workflow_id = self.begin(pollTimeoutSeconds=1, timeoutPolicy="TIME_OUT_WF", retryCount=3)
        self.ends(workflow_id, "Poll timeout configured as 1 seconds.")

    def test_poll_timeout_is_retried(self):
        workflow_id = self.begin(pollTimeoutSeconds=1, timeoutPolicy="RETRY", retryCount=1, retryDelaySeconds=0)
        workflow = self.took(1, lambda: eventually(lambda: self.attempt(workflow_id, 1)))
        self.assertEqual(states(workflow), [("t", "TIMED_OUT"), ("t", "SCHEDULED")])
        finish(poll(self.name))
        until(workflow_id, "COMPLETED")

    def attempt(self, workflow_id, number):
        """The workflow if its task is tried for this time."""
        workflow = shown(workflow_id)
        return workflow if newest(workflow, "t")["retryCount"] == number else None

    def test_poll_timeout_is_only_told(self):
        workflow_id = self.begin(pollTimeoutSeconds=1, timeoutPolicy="ALERT_ONLY")
        self.outlasts(workflow_id)
        finish(poll(self.name))
        until(workflow_id, "COMPLETED")

    def test_response_timeout_is_retried_whatever_the_policy(self):
        for policy in ("TIME_OUT_WF", "ALERT_ONLY", "RETRY"):
            workflow_id = self.begin(responseTimeoutSeconds=1, timeoutPolicy=policy, retryCount=1, retryDelaySeconds=0)
            first = poll(self.name)
            self.is_retried(workflow_id, f"responseTimeout: 1 exceeded for the taskId: {first['taskId']}")

    def test_response_timeout_without_retries(self):
        workflow_id = self.begin(responseTimeoutSeconds=1, retryCount=0)
        poll(self.name)
        self.ends(workflow_id, "responseTimeout: 1 exceeded")

    def test_an_answer_too_late_is_passed_over(self):
        workflow_id = self.begin(responseTimeoutSeconds=1, retryCount=1, retryDelaySeconds=0)
        first = poll(self.name)
        again = poll(self.name)
        finish(first, output={"late": True})
        finish(again, output={"late": False})
        workflow = until(workflow_id, "COMPLETED")
        self.assertEqual(workflow["output"], {"late": False})
        self.assertEqual([s for _, s in states(workflow)], ["TIMED_OUT", "COMPLETED"])

    def test_total_timeout_counts_over_all_attempts(self):
        workflow_id = self.begin(totalTimeoutSeconds=1, retryCount=50, retryDelaySeconds=0, timeoutPolicy="TIME_OUT_WF")
        finish(poll(self.name), "FAILED")
        poll(self.name)
        workflow = self.took(1, lambda: until(workflow_id, "TIMED_OUT"))
        self.assertEqual([s for _, s in states(workflow)], ["FAILED", "TIMED_OUT"])

    def test_total_timeout_is_only_told(self):
        workflow_id = self.begin(totalTimeoutSeconds=1, timeoutPolicy="ALERT_ONLY")
        self.outlasts(workflow_id)
        finish(poll(self.name))
        until(workflow_id, "COMPLETED")

    def test_total_timeout_leaves_nothing_to_retry(self):
        workflow_id = self.begin(totalTimeoutSeconds=1, timeoutPolicy="RETRY", retryCount=50, retryDelaySeconds=0)
        poll(self.name)
        self.ends(workflow_id, "")


class WorkflowTimeouts(Timed):
    def test_it_ends_the_workflow(self):
        mourn = define(unique("mourn"), [task("NOOP", "n")])
        timed = {"timeoutSeconds": 1, "timeoutPolicy": "TIME_OUT_WF", "failureWorkflow": mourn}
        workflow_id = self.begin(workflow=timed)
        workflow = self.took(1, lambda: until(workflow_id, "TIMED_OUT"))
        self.assertEqual(states(workflow), [("t", "CANCELED")])
        self.assertIn("Timeout configured as 1 seconds. Timeout policy configured to TIME_OUT_WF",
                      workflow["reasonForIncompletion"])
        given = until(workflow["output"]["conductor.failure_workflow"], "COMPLETED")["input"]
        self.assertEqual((given["workflowId"], given["failureStatus"]), (workflow_id, "TIMED_OUT"))
        nothing(self.name)

    def test_it_is_only_told(self):
        workflow_id = self.begin(workflow={"timeoutSeconds": 1, "timeoutPolicy": "ALERT_ONLY"})
        a_second_passes()
        finish(poll(self.name))
        until(workflow_id, "COMPLETED")

    def test_a_pause_does_not_stop_it(self):
        workflow_id = self.begin(workflow={"timeoutSeconds": 1, "timeoutPolicy": "TIME_OUT_WF"})
        workflows.pause_workflow(workflow_id)
        self.took(1, lambda: until(workflow_id, "TIMED_OUT"))
        refused(500, workflows.resume_workflow, workflow_id)

    def test_a_retry_begins_its_time_anew(self):
        workflow_id = self.begin(workflow={"timeoutSeconds": 1, "timeoutPolicy": "TIME_OUT_WF"})
        until(workflow_id, "TIMED_OUT")
        workflows.retry_workflow(workflow_id)
        finish(poll(self.name))
        workflow = until(workflow_id, "COMPLETED")
        self.assertEqual([s for _, s in states(workflow)], ["CANCELED", "COMPLETED"])


if __name__ == "__main__":
    unittest.main()
