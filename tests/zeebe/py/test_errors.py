"""Errors and escalations: thrown by jobs and events, caught near and far, or by nobody."""

from grpc import StatusCode

from processes import Processes

NOT_FOUND = StatusCode.NOT_FOUND
STATE = StatusCode.FAILED_PRECONDITION


class Errors(Processes):
    async def test_a_boundary_event_of_the_code_or_of_any(self):
        await self.deploy("error-boundary.bpmn")
        for code, fix in (("BROKEN", "error-fix"), ("OTHER", "error-fix-any")):
            run = self.begin("error-boundary", a=1)
            await self.throw(await self.job("error-boundary"), code, ev=2)
            # What the error brings stays at the event, which has no mapping.
            self.assertEqual((await self.work(fix)).variables, {"a": 1})
            await run

    async def test_an_end_event_throws(self):
        await self.deploy("error-end.bpmn")
        run = self.begin("error-end")
        await self.work("error-end-fix")
        await run

    async def test_a_parent_catches_what_its_child_throws(self):
        await self.deploy("error-call-parent.bpmn", "error-call-child.bpmn")
        run = self.begin("error-call-parent")
        job = await self.job("error-call-work")
        await self.throw(job, "CHILD-BROKEN")
        await self.work("error-call-fix")
        await run
        await self.refused(self.complete(job), NOT_FOUND)

    async def test_an_event_sub_process_catches(self):
        await self.deploy("error-event-subprocess.bpmn")
        run = self.begin("error-event-subprocess")
        await self.throw(await self.job("error-esp"), "BROKEN", ev=1)
        self.assertEqual((await self.work("error-esp-fix", fx=2)).variables, {"ev": 1})
        self.assertEqual(await run, {"ev": 1, "fx": 2})

    async def test_what_nobody_catches_waits_for_a_person(self):
        await self.deploy("one-task.bpmn")
        run = self.begin("one-task")
        job = await self.job("one-task")
        await self.throw(job, "NOBODY")
        await self.refused(self.complete(job), STATE, "in state 'ERROR_THROWN'")
        self.assertIsNotNone(await self.resolve(job.key))
        again = await self.job("one-task")
        self.assertEqual(again.key, job.key)
        await self.complete(again)
        await run

    async def test_escalations(self):
        await self.deploy(
            "escalation-boundary.bpmn", "escalation-boundary-open.bpmn", "escalation-uncaught.bpmn"
        )
        run = self.begin("escalation-boundary")
        await self.work("escalation-int-work")
        await self.work("escalation-int-react")
        await run
        run = self.begin("escalation-boundary-open")
        await self.work("escalation-react")
        self.assertFalse(run.done())
        await self.work("escalation-work")
        await run
        await self.end("escalation-uncaught")
