"""Sub-processes, event sub-processes, call activities, links and terminate ends."""

from grpc import StatusCode

from processes import Processes
from windlass import unique

NOT_FOUND = StatusCode.NOT_FOUND
STATE = StatusCode.FAILED_PRECONDITION


class SubProcesses(Processes):
    async def test_a_sub_process_runs_inside(self):
        await self.deploy("subprocess.bpmn")
        run = self.begin("subprocess", a=1)
        await self.work("subprocess", b=2)
        self.assertEqual(await run, {"a": 1, "b": 2})

    async def test_its_mappings_make_a_scope(self):
        await self.deploy("subprocess-mapping.bpmn")
        run = self.begin("subprocess-mapping", a=1)
        job = await self.work("subprocess-mapping", b=9, c=5)
        self.assertEqual(job.variables, {"a": 1, "b": 1})
        self.assertEqual((await self.work("subprocess-after")).variables, {"a": 1, "c": 5, "d": 5})
        await run

    async def test_an_event_sub_process_runs_beside(self):
        await self.deploy("event-subprocess-message.bpmn")
        key = unique("k")
        run = self.begin("event-subprocess-message", key=key)
        main = await self.job("esp-message")
        await self.publish("scenario-esp", key, p=1)
        first = await self.job("esp-note")
        await self.publish("scenario-esp", key, p=2)
        second = await self.job("esp-note")
        self.assertEqual([first.variables["p"], second.variables["p"]], [1, 2])
        await self.complete(main)
        await self.complete(second)
        self.assertFalse(run.done())
        await self.complete(first)
        self.assertEqual((await run)["p"], 2)

    async def test_an_event_sub_process_takes_over(self):
        await self.deploy("event-subprocess-timer.bpmn")
        run = self.begin("event-subprocess-timer")
        main = await self.job("esp-timer")
        late = await self.job("esp-late")
        await self.refused(self.complete(main), NOT_FOUND, "no such job")
        await self.complete(late, z=1)
        self.assertEqual(await run, {"z": 1})

    async def test_a_child_gets_all_and_gives_all_back(self):
        await self.deploy("call-activity.bpmn", "call-child.bpmn")
        run = self.begin("call-activity", a=1)
        job = await self.work("call-work", made=2)
        self.assertEqual(job.variables, {"a": 1})
        self.assertEqual(job.raw.bpmnProcessId, "call-child")
        self.assertEqual((await self.work("call-after")).variables, {"a": 1, "made": 2})
        await run

    async def test_a_child_gets_and_gives_what_the_mappings_say(self):
        await self.deploy("call-no-propagation.bpmn", "call-child.bpmn")
        run = self.begin("call-no-propagation", a=1)
        self.assertEqual((await self.work("call-work", made=2, more=3)).variables, {"given": 1})
        self.assertEqual((await self.work("call-after")).variables, {"a": 1, "taken": 2})
        await run

    async def test_cancelling_the_parent_cancels_the_child(self):
        await self.deploy("call-activity.bpmn", "call-child.bpmn")
        key = await self.start("call-activity")
        job = await self.job("call-work")
        await self.refused(self.cancel(job.raw.processInstanceKey), STATE, f"instance '{key}'")
        await self.cancel(key)
        await self.refused(self.complete(job), NOT_FOUND)

    async def test_a_child_that_is_not_there_is_an_incident(self):
        await self.deploy("call-unknown.bpmn")
        key = await self.start("call-unknown")
        self.assertIsNotNone(await self.resolve(key))

    async def test_links_and_terminate_ends(self):
        await self.deploy("link-event.bpmn", "terminate-end.bpmn")
        run = self.begin("link-event")
        await self.work("link-work")
        await run
        run = self.begin("terminate-end", a=1)
        slow = await self.job("terminate-slow")
        await self.work("terminate-quick")
        self.assertEqual(await run, {"a": 1})
        await self.refused(self.complete(slow), NOT_FOUND)
