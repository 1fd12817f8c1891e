"""Event handlers: written, listed, forgotten, and what they do when something is published."""

import unittest

from conductor.client.http.models.action import Action
from conductor.client.http.models.event_handler import EventHandler
from conductor.client.http.models.start_workflow import StartWorkflow
from conductor.client.http.models.task_details import TaskDetails

from windlass import (
    api, define, event_api, eventually, message, sentences, shown, start, task, unique, until, until_task,
)


def starts(name, given=None):
    return Action(action="start_workflow", start_workflow=StartWorkflow(name=name, input=given or {}))


class Handlers(unittest.TestCase):
    def handler(self, event, actions, **more):
        """A handler that goes with its scenario."""
        handler = EventHandler(name=unique("handler"), event=event, actions=actions, active=True, **more)
        event_api.add_event_handler(handler)
        self.addCleanup(event_api.remove_event_handler_status, handler.name)
        return handler

    def publisher(self):
        """A workflow that publishes its input, and the name of the event."""
        name = unique("publisher")
        define(name, [task("EVENT", "e", {"x": "${workflow.input.x}", "to": "${workflow.input.to}"}, sink="conductor")])
        return name, f"conductor:{name}:e"

    def test_they_come_and_go(self):
        event, done = f"conductor:{unique('flow')}:e", define(unique("done"), [task("NOOP", "n")])
        given = EventHandler(name=unique("handler"), event=event, actions=[starts(done)], active=True,
                             condition="true", evaluator_type="javascript")
        missing = f"EventHandler with name {given.name} not found!"
        self.assertEqual(message(404, event_api.update_event_handler, given), missing)
        event_api.add_event_handler(given)
        self.assertEqual(
            message(409, event_api.add_event_handler, given), f"EventHandler with name {given.name} already exists!"
        )
        found = event_api.get_event_handlers_for_event(event)
        self.assertEqual([(one.name, one.event, one.active) for one in found], [(given.name, event, True)])
        self.assertEqual((found[0].condition, found[0].evaluator_type), ("true", "javascript"))
        self.assertEqual(found[0].actions[0].start_workflow.name, done)
        self.assertIn(given.name, [one["name"] for one in api("GET", "/event")])

        given.active = False
        event_api.update_event_handler(given)
        self.assertEqual(event_api.get_event_handlers_for_event(event), [])
        self.assertEqual(len(event_api.get_event_handlers_for_event(event, active_only=False)), 1)
        event_api.remove_event_handler_status(given.name)
        self.assertEqual(message(404, event_api.remove_event_handler_status, given.name), missing)
        self.assertNotIn(given.name, [one["name"] for one in api("GET", "/event")])

    def test_what_is_wrong_is_said(self):
        for body in ({"event": "conductor:a:b", "actions": []}, {"name": unique("handler"), "actions": []}):
            self.assertTrue(sentences(event_api.add_event_handler, {**body, "active": True}))

    def test_a_workflow_is_started(self):
        publisher, event = self.publisher()
        started = define(unique("started"), [task("NOOP", "n")])
        self.handler(event, [starts(started, {"got": "${x}", "by": "${workflowInstanceId}", "fixed": 1})])
        by = start(publisher, {"x": {"deep": [7]}}, correlation_id="c")
        published = until(by, "COMPLETED")["tasks"][0]
        self.assertEqual(published["outputData"]["event_produced"], event)
        self.assertEqual(published["outputData"]["workflowType"], publisher)
        found = eventually(lambda: api("GET", "/workflow/search", query=f"workflowType = {started}")["results"])
        workflow = until(found[0]["workflowId"], "COMPLETED")
        given = workflow["input"]
        self.assertEqual((given["got"], given["by"], given["fixed"]), ({"deep": [7]}, by, 1))
        self.assertEqual((given["conductor.event.name"], workflow["event"]), (event, event))
        self.assertTrue(given["conductor.event.messageId"])

    def test_a_task_is_completed_or_failed(self):
        for action, status, end in [("complete_task", "COMPLETED", "COMPLETED"), ("fail_task", "FAILED", "FAILED")]:
            publisher, event = self.publisher()
            details = TaskDetails(workflow_id="${to}", task_ref_name="w", output={"got": "${x}"})
            self.handler(event, [Action(action=action, **{action: details})])
            waiting = start(define(unique("waiting"), [task("WAIT", "w")]))
            until_task(waiting, "w")
            until(start(publisher, {"x": 5, "to": waiting}), "COMPLETED")
            workflow = until(waiting, end)
            self.assertEqual(workflow["tasks"][0]["status"], status)
            output = workflow["tasks"][0]["outputData"]
            self.assertEqual((output["got"], output["conductor.event.name"]), (5, event))

    def test_a_condition_decides(self):
        publisher, event = self.publisher()
        small, large = (define(unique(name), [task("NOOP", "n")]) for name in ("small", "large"))
        self.handler(event, [starts(small)], condition="$.x < 10")
        self.handler(event, [starts(large)], condition="$.x >= 10")
        until(start(publisher, {"x": 70}), "COMPLETED")
        eventually(lambda: api("GET", "/workflow/search", query=f"workflowType = {large}")["totalHits"] == 1)
        # The one that must not start would have started before it.
        self.assertEqual(api("GET", "/workflow/search", query=f"workflowType = {small}")["totalHits"], 0)

    def test_a_workflow_is_changed_and_ended(self):
        publisher, event = self.publisher()
        target = start(define(unique("target"), [task("HUMAN", "h")], variables={"v": 0}))
        until_task(target, "h")
        name = unique("handler")
        self.addCleanup(event_api.remove_event_handler_status, name)
        event_api.add_event_handler({
            "name": name, "event": event, "active": True, "actions": [
                {"action": "update_workflow_variables",
                 "update_workflow_variables": {"workflowId": "${to}", "variables": {"v": "${x}"}}},
                {"action": "terminate_workflow",
                 "terminate_workflow": {"workflowId": "${to}", "terminationReason": "by event"}},
            ],
        })
        until(start(publisher, {"x": 4, "to": target}), "COMPLETED")
        ended = until(target, "TERMINATED")
        self.assertEqual((ended["variables"], ended["reasonForIncompletion"]), ({"v": 4}, "by event"))

    def test_sinks(self):
        name = unique("flow")
        define(name, [task("EVENT", "e", sink="conductor:named"),
                      task("EVENT", "f", {"x": 1}, sink="${workflow.input.sink}", asyncComplete=True)])
        workflow_id = start(name, {"sink": "conductor"})
        workflow = until_task(workflow_id, "f")
        self.assertEqual(workflow["tasks"][0]["outputData"]["event_produced"], f"conductor:{name}:named")
        self.assertEqual(workflow["tasks"][1]["outputData"]["event_produced"], f"conductor:{name}:f")
        api("POST", f"/tasks/{workflow_id}/f/COMPLETED", {})
        until(workflow_id, "COMPLETED")
        failed = until(start(name, {"sink": "sqs:q"}), "FAILED")
        self.assertIn("sqs:q", failed["tasks"][1]["reasonForIncompletion"])
        self.assertEqual(shown(workflow_id)["status"], "COMPLETED")


if __name__ == "__main__":
    unittest.main()
