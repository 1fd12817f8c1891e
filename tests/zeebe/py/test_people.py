"""User tasks as jobs, and execution listeners."""

import json

from grpc import StatusCode

from processes import Processes

STATE = StatusCode.FAILED_PRECONDITION


class People(Processes):
    async def test_an_older_user_task_is_a_job(self):
        await self.deploy("user-task-job.bpmn")
        run = self.begin("user-task-job", owner="ann")
        job = await self.job("io.camunda.zeebe:userTask")
        headers = json.loads(job.raw.customHeaders)
        self.assertEqual(headers["lane"], "b")
        self.assertEqual(headers["io.camunda.zeebe:assignee"], "ann")
        self.assertEqual(headers["io.camunda.zeebe:formKey"], "approve-form")
        groups = json.loads(headers["io.camunda.zeebe:candidateGroups"])
        self.assertEqual(groups, ["clerks", "bosses"])
        self.assertEqual(job.raw.retries, 1)
        await self.complete(job, ok=True)
        self.assertEqual(await run, {"owner": "ann", "ok": True})

    async def test_a_native_user_task_is_no_job(self):
        await self.deploy("user-task-native.bpmn", "form.form")
        await self.start("user-task-native", owner="ann")
        await self.no_job("io.camunda.zeebe:userTask")

    async def test_listeners_go_around_the_work(self):
        await self.deploy("execution-listeners.bpmn")
        run = self.begin("execution-listeners", a=1)
        for job_type, variables in (
            ("listen-start-1", {"s1": 1}),
            ("listen-start-2", {"s2": 2}),
            ("listen-work", {"made": 3, "other": 4}),
            ("listen-end-1", {"e1": 5}),
            ("listen-end-2", {}),
        ):
            job = await self.work(job_type, **variables)
            self.assertEqual(job.raw.elementId, "work")
        self.assertEqual((await run)["kept"], 3)

    async def test_listeners_of_a_process(self):
        await self.deploy("execution-listeners-process.bpmn")
        run = self.begin("execution-listeners-process", a=1)
        for job_type in ("listen-process-start", "listen-process-work", "listen-process-end"):
            await self.work(job_type)
        await run

    async def test_a_listener_throws_no_errors_and_its_incident_is_resolved(self):
        await self.deploy("execution-listeners.bpmn")
        await self.start("execution-listeners", a=1)
        job = await self.job("listen-start-1")
        await self.refused(self.throw(job, "X"), STATE, "EXECUTION_LISTENER")
        await self.fail_job(job, 0)
