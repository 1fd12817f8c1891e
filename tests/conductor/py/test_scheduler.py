"""Schedules that start workflows."""

import time
import unittest

from conductor.client.http.models.save_schedule_request import SaveScheduleRequest
from conductor.client.http.models.start_workflow_request import StartWorkflowRequest

from windlass import (
    api, define, eventually, message, refused, scheduler, scheduler_api, sentences, shown, task, unique, until,
)

DAY_MS = 24 * 60 * 60 * 1000
NINE = "0 0 9 * * ?"


class Schedules(unittest.TestCase):
    def setUp(self):
        self.flow = define(unique("flow"), [task("NOOP", "n")])

    def schedule(self, cron=NINE, flow=None, **more):
        """A schedule that goes with its scenario."""
        name = unique("schedule")
        request = StartWorkflowRequest(name=flow or self.flow, version=1, input={"k": 1})
        self.addCleanup(scheduler.delete_schedule, name)
        scheduler.save_schedule(SaveScheduleRequest(
            name=name, cron_expression=cron, start_workflow_request=request, **more,
        ))
        return name

    def test_they_come_and_go(self):
        name = self.schedule(description="d", zone_id="Europe/Berlin", created_by="me")
        read = scheduler.get_schedule(name)
        self.assertEqual((read.name, read.cron_expression, read.zone_id), (name, NINE, "Europe/Berlin"))
        self.assertEqual((read.paused, read.created_by, read.description), (False, "me", "d"))
        self.assertEqual(read.start_workflow_request.name, self.flow)
        whole = api("GET", f"/scheduler/schedules/{name}")
        self.assertEqual(whole["startWorkflowRequest"]["input"], {"k": 1})
        self.assertGreater(whole["nextRunTime"], time.time() * 1000)
        self.assertLess(whole["nextRunTime"], time.time() * 1000 + 2 * DAY_MS)

        other = self.schedule(paused=True)
        names = {one.name for one in scheduler.get_all_schedules()}
        self.assertLessEqual({name, other}, names)
        mine = [one.name for one in scheduler.get_all_schedules(workflow_name=self.flow)]
        self.assertEqual(mine, sorted([name, other]))
        found = api("GET", "/scheduler/schedules/search", workflowName=self.flow, paused="true")
        self.assertEqual((found["totalHits"], found["results"][0]["name"]), (1, other))
        self.assertEqual(api("GET", "/scheduler/schedules/search", scheduleName=name)["totalHits"], 1)
        page = api("GET", "/scheduler/schedules/search", workflowName=self.flow, start=1, size=5)
        self.assertEqual((page["totalHits"], len(page["results"])), (2, 1))

        scheduler.delete_schedule(name)
        self.assertEqual(message(404, scheduler.get_schedule, name), f"Schedule '{name}' not found")
        scheduler.delete_schedule(name)

    def test_they_pause_and_go_on(self):
        name = self.schedule()
        self.assertEqual(message(404, scheduler.resume_schedule, name), f"Schedule '{name}' not found")
        scheduler.pause_schedule(name, reason="later")
        read = api("GET", f"/scheduler/schedules/{name}")
        self.assertEqual((read["paused"], read["pausedReason"]), (True, "later"))
        self.assertNotIn("nextRunTime", read)
        scheduler.resume_schedule(name)
        self.assertFalse(scheduler.get_schedule(name).paused)
        none = unique("none")
        self.assertEqual(message(404, scheduler.pause_schedule, none), f"Schedule '{none}' not found")
        for verb in ("pause", "resume"):
            answer = api("PUT", f"/scheduler/bulk/{verb}", [name, none])
            self.assertEqual(answer, {
                "bulkErrorResults": {none: f"Schedule '{none}' not found"},
                "bulkSuccessfulResults": [name], "message": "Bulk Request has been processed.",
            })

    def test_all_pause_and_go_on_together(self):
        running, paused = self.schedule(), self.schedule()
        scheduler.pause_schedule(paused, reason="mine")
        scheduler.pause_all_schedules()
        self.addCleanup(scheduler.resume_all_schedules)
        self.assertTrue(scheduler.get_schedule(running).paused)
        scheduler.resume_all_schedules()
        self.assertFalse(scheduler.get_schedule(running).paused)
        self.assertEqual(api("GET", f"/scheduler/schedules/{paused}")["pausedReason"], "mine")

    def test_a_schedule_starts_workflows(self):
        every_second = "* * * * * *"
        name, broken = self.schedule(every_second), self.schedule(every_second, flow=unique("none"))

        def runs(query):
            return api("GET", "/scheduler/search/executions", query=query, size=50)

        run = eventually(lambda: runs(f"scheduleName = {name} AND state = EXECUTED")["results"])[-1]
        workflow = until(run["workflowId"], "COMPLETED")
        self.assertEqual((run["scheduleName"], run["workflowName"]), (name, self.flow))
        self.assertEqual((workflow["input"]["k"], workflow["workflowName"]), (1, self.flow))
        self.assertEqual(run["scheduledTime"] % 1000, 0)
        self.assertGreaterEqual(run["executionTime"], run["scheduledTime"])
        failed = eventually(lambda: runs(f"scheduleName = {broken} AND state = FAILED")["results"])[0]
        self.assertIn("No such workflow defined", failed["reason"])
        scheduler.pause_schedule(name)
        last = runs(f"scheduleName = {name}")["totalHits"]
        found = scheduler.search_schedule_executions(size=50, query=f"scheduleName = {name}")
        self.assertEqual(len(found.results), last)
        self.assertEqual(shown(found.results[0].workflow_id)["status"], "COMPLETED")
        self.assertEqual(scheduler_api.requeue_all_execution_records()["recordIds.size"], 0)

    def test_the_next_times(self):
        times = scheduler.get_next_few_schedule_execution_times(NINE)
        self.assertEqual(len(times), 5)
        self.assertEqual({after - before for before, after in zip(times, times[1:])}, {DAY_MS})
        self.assertEqual(times[0] % DAY_MS, 9 * 60 * 60 * 1000)
        # The year 2100, at nine on its first day.
        first = scheduler.get_next_few_schedule_execution_times(
            NINE, schedule_start_time=4_102_444_800_000, limit=1
        )
        self.assertEqual(first, [4_102_477_200_000])
        self.assertEqual(
            message(400, scheduler.get_next_few_schedule_execution_times, "nonsense"), "Invalid cron expression"
        )
        refused(500, api, "GET", "/scheduler/nextFewSchedules")

    def test_what_is_wrong_is_said(self):
        body = {"name": unique("wrong"), "cronExpression": NINE, "startWorkflowRequest": {"name": self.flow}}
        self.assertEqual(sentences(scheduler.save_schedule, {**body, "name": ""}),
                         ["Schedule name cannot be null or empty"])
        self.assertEqual(sentences(scheduler.save_schedule, {**body, "startWorkflowRequest": None}),
                         ["startWorkflowRequest cannot be null or empty"])
        for cron in ("nonsense", "0 0 99 * * ?", ""):
            refused(400, scheduler.save_schedule, {**body, "cronExpression": cron})
        refused(404, scheduler.get_schedule, body["name"])


if __name__ == "__main__":
    unittest.main()
