"""What a worker and those who look after it call: polls, results, names, logs, queues."""

import time
import unittest

from windlass import (
    api, api_client, define, define_task, finish, message, newest, nothing, poll, refused, result, sentences,
    shown, simple, start, states, task, task_api, tasks, unique, until, until_task,
)


def with_status(given, status):
    """A result as the SDK writes it, with a status that its class does not know."""
    return {**api_client.sanitize_for_serialization(given), "status": status}


class Polls(unittest.TestCase):
    def test_one_and_many(self):
        name = unique("work")
        self.assertEqual(api("GET", f"/tasks/poll/{name}"), "")
        self.assertEqual(tasks.batch_poll_tasks(name, worker_id="w", count=3, timeout_in_millisecond=50), [])
        flow = define(unique("flow"), [simple(name, inputParameters={"n": "${workflow.input.n}"})])
        ids = [start(flow, {"n": n}, correlation_id=f"c{n}", priority=5) for n in range(4)]

        first = tasks.poll_task(name, worker_id="me")
        self.assertEqual((first.status, first.worker_id, first.poll_count), ("IN_PROGRESS", "me", 1))
        self.assertEqual((first.workflow_instance_id, first.input_data), (ids[0], {"n": 0}))
        self.assertEqual((first.task_type, first.task_def_name, first.seq), (name, name, 1))
        self.assertEqual((first.correlation_id, first.workflow_priority), ("c0", 5))
        self.assertEqual((first.workflow_type, first.response_timeout_seconds), (flow, 3600))
        self.assertGreater(first.start_time, 0)
        rest = tasks.batch_poll_tasks(name, worker_id="me", count=9, timeout_in_millisecond=2_000)
        self.assertEqual([one.workflow_instance_id for one in rest], ids[1:])
        nothing(name)

    def test_urgent_workflows_come_first(self):
        name = unique("work")
        flow = define(unique("flow"), [simple(name)])
        ids = [start(flow, priority=priority) for priority in (1, 99, 50)]
        order = [tasks.poll_task(name).workflow_instance_id for _ in ids]
        self.assertEqual(order, [ids[1], ids[2], ids[0]])

    def test_domains(self):
        name, other = unique("work"), unique("other")
        flow = define(unique("flow"), [simple(name), simple(other)])
        start(flow, task_to_domain={"*": "blue", other: "NO_DOMAIN"})
        nothing(name)
        self.assertEqual(tasks.batch_poll_tasks(name, count=1, timeout_in_millisecond=50, domain="red"), [])
        self.assertEqual(api("GET", "/tasks/queue/size", taskType=name, domain="blue"), 1)
        one = tasks.poll_task(name, worker_id="w", domain="blue")
        self.assertEqual(one.domain, "blue")
        api("POST", "/tasks", result(shown(one.workflow_instance_id)["tasks"][0]))
        finish(poll(other))
        until(one.workflow_instance_id, "COMPLETED")

    def test_what_cannot_be_polled(self):
        self.assertEqual(
            message(400, tasks.batch_poll_tasks, unique("work"), timeout_in_millisecond=5_001),
            "Long Poll Timeout value cannot be more than 5 seconds",
        )
        self.assertIn("many", message(500, api, "GET", "/tasks/poll/batch/x", count="many"))


class Results(unittest.TestCase):
    def test_a_result_brings_the_next_task(self):
        name = unique("chain")
        workflow_id = start(define(unique("flow"), [simple(name, ref="a"), simple(name, ref="b")]))
        beat = result(poll(name), "IN_PROGRESS", extend_lease=True)
        self.assertEqual(api("POST", "/tasks/update-v2", beat), "")
        again = task_api.update_task_v2(result(newest(shown(workflow_id), "a"), output={"n": 1}))
        self.assertEqual((again.reference_task_name, again.status), ("b", "IN_PROGRESS"))
        self.assertEqual(api("POST", "/tasks/update-v2", result(newest(shown(workflow_id), "b"))), "")
        workflow = until(workflow_id, "COMPLETED")
        self.assertEqual(workflow["tasks"][0]["outputData"], {"n": 1})
        # What has ended stays as it is.
        ended = result(workflow["tasks"][0], "FAILED", {"n": 2})
        self.assertEqual(tasks.update_task(ended), workflow["tasks"][0]["taskId"])
        self.assertEqual(api("POST", "/tasks/update-v2", ended), "")
        self.assertEqual(shown(workflow_id)["tasks"][0]["outputData"], {"n": 1})

    def test_how_a_task_may_end(self):
        name = define_task(unique("ends"), retryCount=0)
        flow = define(unique("flow"), [simple(name, ref="t")])
        for status, end in [
            ("COMPLETED", "COMPLETED"), ("FAILED", "FAILED"), ("CANCELED", "TERMINATED"),
            ("FAILED_WITH_TERMINAL_ERROR", "FAILED"),
        ]:
            workflow_id = start(flow)
            one = poll(name)
            ended = result(one, "FAILED", {"by": status}, reason_for_incompletion="why", logs=[{"log": status}])
            tasks.update_task(with_status(ended, status))
            workflow = until(workflow_id, end)
            self.assertEqual(states(workflow), [("t", status)])
            self.assertEqual(newest(workflow, "t")["outputData"], {"by": status})
            self.assertEqual([line.log for line in tasks.get_task_logs(one["taskId"])], [status])
            if end != "COMPLETED":
                self.assertEqual(
                    workflow["reasonForIncompletion"],
                    f"Task {one['taskId']} failed with status: {end} and reason: 'why'",
                )

    def test_results_for_nothing(self):
        name = unique("work")
        start(define(unique("flow"), [simple(name)]))
        one = poll(name)
        for update in (tasks.update_task, task_api.update_task_v2):
            self.assertEqual(sentences(update, {"status": "COMPLETED"}), [
                "Workflow Id cannot be null or empty", "Task ID cannot be null or empty",
            ])
            self.assertEqual(
                message(404, update, result({**one, "workflowInstanceId": "nobody"})),
                "No such workflow found by id: nobody",
            )
            self.assertEqual(
                message(404, update, result({**one, "taskId": "none"})), "No such task found by id: none"
            )
            refused(500, update, with_status(result(one), "EXCELLENT"))

    def test_a_task_is_updated_by_its_name(self):
        name = unique("named")
        workflow_id = start(define(unique("flow"), [simple(name, ref="a"), task("HUMAN", "h"), task("WAIT", "w")]))
        one = poll(name)
        self.assertEqual(tasks.update_task_by_ref_name(workflow_id, "a", "COMPLETED", 7), one["taskId"])
        read = tasks.get_task(one["taskId"])
        self.assertEqual((read.status, read.output_data), ("COMPLETED", {"result": 7}))
        until_task(workflow_id, "h")
        workflow = tasks.update_task_sync(workflow_id, "h", "COMPLETED", {"x": 1})
        self.assertEqual((workflow.workflow_id, workflow.status), (workflow_id, "RUNNING"))
        self.assertEqual(workflow.tasks[1].output_data, {"x": 1})
        # Nothing has that name, or it has ended.
        self.assertEqual(api("POST", f"/tasks/{workflow_id}/a/COMPLETED", {}, workerid="x"), "")
        for ref in ("a", "none"):
            self.assertEqual(
                message(404, tasks.update_task_sync, workflow_id, ref, "COMPLETED", {}),
                f"Found no running task {ref} of workflow {workflow_id} to update",
            )
        refused(500, tasks.update_task_sync, workflow_id, "w", "EXCELLENT", {})
        self.assertEqual(message(404, tasks.update_task_sync, "nobody", "w", "COMPLETED", {}),
                         "No such workflow found by id: nobody")

    def test_waits_are_woken_through_the_queue(self):
        workflow_id = start(define(unique("flow"), [task("WAIT", "a"), task("WAIT", "b")]))
        until_task(workflow_id, "a")
        api("POST", f"/queue/update/{workflow_id}/a/COMPLETED", {"x": 1})
        workflow = until_task(workflow_id, "b")
        self.assertEqual(workflow["tasks"][0]["outputData"], {"x": 1})
        self.assertIn("waits under the name a", message(400, api, "POST", f"/queue/update/{workflow_id}/a/COMPLETED"))
        second = newest(workflow, "b")["taskId"]
        api("POST", f"/queue/update/{workflow_id}/task/{second}/COMPLETED", {"y": 2})
        self.assertEqual(until(workflow_id, "COMPLETED")["output"], {"y": 2})
        refused(404, api, "POST", f"/queue/update/{workflow_id}/task/none/COMPLETED")

    def test_tasks_are_read(self):
        self.assertEqual(message(404, tasks.get_task, "none"), "Task not found for taskId: none")
        asked = {"operation": "READ", "payloadType": "TASK_OUTPUT"}
        place = task_api.get_external_storage_location1("p", "READ", "TASK_OUTPUT")
        self.assertEqual((place.uri, place.path), ("", ""))
        self.assertEqual(
            api("GET", "/tasks/external-storage-location", **asked, **{"path": "p"}), {"uri": "", "path": ""}
        )
        refused(500, api, "GET", "/tasks/externalstoragelocation", **asked)

    def test_logs(self):
        name = unique("talks")
        start(define(unique("flow"), [simple(name)]))
        one = poll(name)
        self.assertEqual(tasks.get_task_logs(one["taskId"]), [])
        for line in ("first", "second: {\"any\": [text]}"):
            api("POST", f"/tasks/{one['taskId']}/log", line)
        tasks.add_task_log(one["taskId"], "third")
        lines = tasks.get_task_logs(one["taskId"])
        self.assertEqual([line.log for line in lines][::2], ["first", "third"])
        self.assertEqual({line.task_id for line in lines}, {one["taskId"]})
        self.assertLess(abs(lines[0].created_time / 1000 - time.time()), 60)
        self.assertEqual(tasks.get_task_logs("none"), [])
        self.assertEqual(message(404, tasks.add_task_log, "none", "x"), "No such task found by id: none")


class Queues(unittest.TestCase):
    def test_what_waits_and_who_asks(self):
        name, idle = unique("queued"), unique("idle")
        flow = define(unique("flow"), [simple(name)])
        ids = [start(flow) for _ in range(3)]
        tasks.poll_task(name, worker_id="me", domain=None)
        self.assertEqual(tasks.get_queue_size_for_task(name), 2)
        self.assertEqual(task_api.size(task_type=[name])[name], 2)
        sizes = api("GET", "/tasks/queue/sizes", taskType=f"{name},{idle}")
        self.assertEqual(sizes, {name: 2, idle: 0})
        self.assertEqual(api("GET", "/tasks/queue/size", taskType=name), 2)
        self.assertEqual(task_api.all()[name], 2)
        self.assertEqual(task_api.all_verbose()[name], {"a": {"size": 2, "uacked": 1}})
        data = tasks.get_task_poll_data(name)
        self.assertEqual([(one.queue_name, one.worker_id) for one in data], [(name, "me")])
        self.assertLess(abs(data[0].last_poll_time / 1000 - time.time()), 60)
        api("GET", f"/tasks/poll/{idle}", workerid="other", domain="d")
        all_data = {(one.queue_name, one.worker_id, one.domain) for one in task_api.get_all_poll_data()}
        self.assertLessEqual({(name, "me", None), (idle, "other", "d")}, all_data)
        self.assertEqual(tasks.get_task_poll_data(unique("none")), [])
        refused(500, api, "GET", "/tasks/queue/size")
        refused(500, api, "GET", "/tasks/queue/polldata")

        pending = api("GET", f"/admin/task/{name}", start=0, count=9)
        self.assertEqual([one["workflowInstanceId"] for one in pending], ids)
        self.assertEqual(len(api("GET", f"/admin/task/{name}", start=1, count=1)), 1)

    def test_what_was_put_back_is_queued_again(self):
        name = unique("later")
        start(define(unique("flow"), [simple(name)]))
        finish(poll(name), "IN_PROGRESS", callback_after_seconds=900)
        nothing(name)
        self.assertEqual(task_api.requeue_pending_task(name), "1")
        poll(name)
        self.assertEqual(task_api.requeue_pending_task(unique("none")), "0")


if __name__ == "__main__":
    unittest.main()
