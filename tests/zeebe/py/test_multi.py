"""Multi-instances: parallel and sequential, of tasks, sub-processes and call activities."""

from grpc import StatusCode

from processes import Processes
from windlass import unique

NOT_FOUND = StatusCode.NOT_FOUND


class Multi(Processes):
    async def test_parallel_keeps_places(self):
        await self.deploy("multi-parallel.bpmn")
        run = self.begin("multi-parallel", items=["x", "y", "z"])
        jobs = await self.jobs("multi-parallel", 3)
        self.assertEqual([job.variables["item"] for job in jobs], ["x", "y", "z"])
        self.assertEqual([job.variables["loopCounter"] for job in jobs], [1, 2, 3])
        await self.complete(jobs[1], result="R1", extra=7)
        await self.complete(jobs[0])
        await self.complete(jobs[2], result="R2")
        after = await self.work("multi-after")
        self.assertEqual(after.variables["results"], [None, "R1", "R2"])
        self.assertEqual(after.variables["extra"], 7)
        await run

    async def test_sequential_goes_one_by_one(self):
        await self.deploy("multi-sequential.bpmn")
        run = self.begin("multi-sequential", items=["x", "y", "z"])
        for n, item in enumerate(["x", "y", "z"]):
            job = await self.job("multi-sequential")
            self.assertEqual(job.variables["item"], item)
            await self.no_job("multi-sequential")
            await self.complete(job, result=n)
        self.assertEqual((await self.work("multi-after")).variables["results"], [0, 1, 2])
        await run

    async def test_nothing_to_go_through_is_done(self):
        await self.deploy("multi-parallel.bpmn")
        run = self.begin("multi-parallel", items=[])
        self.assertEqual((await self.work("multi-after")).variables["results"], [])
        await run

    async def test_no_collection_is_an_incident_that_can_be_mended(self):
        await self.deploy("multi-parallel.bpmn")
        key = await self.start("multi-parallel", items="abc")
        await self.set_variables(key, items=[1])
        self.assertIsNotNone(await self.resolve(key))
        await self.work("multi-parallel", result=1)
        self.assertEqual((await self.work("multi-after")).variables["results"], [1])

    async def test_a_condition_ends_it_early(self):
        await self.deploy("multi-condition.bpmn")
        run = self.begin("multi-condition", items=[1, 2, 3, 4])
        jobs = await self.jobs("multi-condition", 4)
        await self.complete(jobs[3], result="d")
        await self.complete(jobs[0], result="a")
        after = await self.work("multi-after")
        self.assertEqual(after.variables["results"], ["a", None, None, "d"])
        await self.refused(self.complete(jobs[1]), NOT_FOUND)
        await run

    async def test_a_boundary_event_ends_all(self):
        await self.deploy("multi-boundary.bpmn", "multi-error.bpmn")
        key = unique("k")
        run = self.begin("multi-boundary", items=[1, 2, 3], key=key)
        jobs = await self.jobs("multi-boundary", 3)
        await self.complete(jobs[0], result=1)
        await self.publish("scenario-multi-stop", key)
        stopped = await self.work("multi-stopped")
        self.assertNotIn("results", stopped.variables)
        await self.refused(self.complete(jobs[1]), NOT_FOUND)
        await run
        run = self.begin("multi-error", items=[1, 2])
        jobs = await self.jobs("multi-error", 2)
        await self.throw(jobs[1], "BROKEN")
        await self.work("multi-error-stopped")
        await run

    async def test_sub_processes_and_call_activities(self):
        await self.deploy("multi-subprocess.bpmn", "multi-call.bpmn", "call-child.bpmn")
        run = self.begin("multi-subprocess", items=["x", "y"])
        jobs = await self.jobs("multi-subprocess", 2)
        await self.complete(jobs[1], result="r1")
        await self.complete(jobs[0], result="r0")
        self.assertEqual((await run)["results"], ["r0", "r1"])
        run = self.begin("multi-call", items=["x", "y"])
        jobs = await self.jobs("call-work", 2)
        self.assertEqual([job.variables["item"] for job in jobs], ["x", "y"])
        await self.complete(jobs[0], made="m0")
        await self.complete(jobs[1], made="m1")
        # The real broker lets the second child's copy overwrite the list.
        self.assertEqual((await run)["results"], ["m0", "m1"])
