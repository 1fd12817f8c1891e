"""Workers of the Python SDK, each in a process of its own: what they return, raise and say while they work."""

import unittest

from conductor.client.automator.task_handler import TaskHandler
from conductor.client.context.task_context import TaskInProgress, get_task_context
from conductor.client.worker.exception import NonRetryableException
from conductor.client.worker.worker import Worker

from windlass import (
    configuration, define, define_task, metadata, newest, simple, start, states, tasks, unique, until,
)


def double(task):
    """A plain function."""
    return {"n": task.input_data["n"] * 2, "by": task.worker_id}


async def double_later(n: int):
    """One that a loop of events runs, and that asks for its input by name."""
    return {"n": n * 2}


def fails_once(task):
    """One that raises at its first attempt."""
    if task.retry_count == 0:
        raise ValueError("not today")
    return {"attempt": task.retry_count}


def fails_for_good(task):
    """One that knows that another attempt does not help."""
    raise NonRetryableException("never")


def in_steps(task):
    """One that puts its task back twice."""
    if task.poll_count < 3:
        return TaskInProgress(callback_after_seconds=0, output={"step": task.poll_count})
    return {"before": task.output_data["step"]}


def talks(task):
    """One that says what it does."""
    context = get_task_context()
    context.add_log("first")
    context.add_log("second")
    return {"polls": context.get_poll_count()}


class Handlers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.names = {
            "plain": define_task(unique("plain")),
            "later": define_task(unique("later")),
            "once": define_task(unique("once"), retryCount=1, retryDelaySeconds=0),
            "final": define_task(unique("final"), retryCount=5, retryDelaySeconds=0),
            "steps": define_task(unique("steps")),
            "talks": define_task(unique("talks")),
            "blue": define_task(unique("blue")),
            "registered": unique("registered"),
        }

        def worker(name, function, **more):
            return Worker(cls.names[name], function, poll_interval=20, **more)

        cls.handler = TaskHandler([
            worker("plain", double, worker_id="me"), worker("later", double_later),
            worker("once", fails_once), worker("final", fails_for_good), worker("steps", in_steps),
            worker("talks", talks), worker("blue", double, domain="blue"),
            worker("registered", double, register_task_def=True),
        ], configuration, scan_for_annotated_workers=False)
        cls.handler.start_processes()
        cls.addClassCleanup(cls.handler.stop_processes)

    def run_one(self, name, end="COMPLETED", **more):
        name = self.names[name]
        flow = define(unique("flow"), [simple(name, ref="t", inputParameters={"n": "${workflow.input.n}"})])
        return until(start(flow, {"n": 4}, **more), end, wait=30)

    def test_functions(self):
        self.assertEqual(self.run_one("plain")["output"], {"n": 8, "by": "me"})
        self.assertEqual(self.run_one("later")["output"], {"n": 8})

    def test_what_is_raised(self):
        workflow = self.run_one("once")
        self.assertEqual([s for _, s in states(workflow)], ["FAILED", "COMPLETED"])
        self.assertIn("not today", workflow["tasks"][0]["reasonForIncompletion"])
        lines = [line.log for line in tasks.get_task_logs(workflow["tasks"][0]["taskId"])]
        self.assertIn("ValueError", "\n".join(lines))
        workflow = self.run_one("final", "FAILED")
        self.assertEqual(states(workflow), [("t", "FAILED_WITH_TERMINAL_ERROR")])
        self.assertIn("never", workflow["reasonForIncompletion"])

    def test_a_task_in_steps(self):
        workflow = self.run_one("steps")
        self.assertEqual((workflow["output"], workflow["tasks"][0]["pollCount"]), ({"before": 2}, 3))

    def test_what_is_said(self):
        workflow = self.run_one("talks")
        lines = tasks.get_task_logs(newest(workflow, "t")["taskId"])
        self.assertEqual([line.log for line in lines], ["first", "second"])

    def test_a_domain(self):
        workflow = self.run_one("blue", task_to_domain={"*": "blue"})
        self.assertEqual((workflow["output"]["n"], newest(workflow, "t")["domain"]), (8, "blue"))

    def test_a_definition_that_comes_with_its_worker(self):
        self.assertEqual(self.run_one("registered")["output"]["n"], 8)
        self.assertEqual(metadata.get_task_def(self.names["registered"]).name, self.names["registered"])


if __name__ == "__main__":
    unittest.main()
