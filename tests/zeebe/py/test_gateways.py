"""Exclusive, parallel and inclusive gateways."""

from grpc import StatusCode

from processes import Processes

NOT_FOUND = StatusCode.NOT_FOUND


class Gateways(Processes):
    async def test_exclusive_takes_what_is_true_or_the_default(self):
        await self.deploy("exclusive-gateway.bpmn")
        for variables, job_type in (
            ({"amount": 101}, "exclusive-big"),
            ({"amount": 100}, "exclusive-other"),
        ):
            run = self.begin("exclusive-gateway", **variables)
            await self.work(job_type)
            await run

    async def test_exclusive_with_nothing_true_is_an_incident(self):
        await self.deploy("exclusive-no-default.bpmn")
        key = await self.start("exclusive-no-default", x=3)
        first = await self.resolve(key)
        self.assertIsNotNone(first)
        await self.set_variables(key, x=2)
        self.assertIsNotNone(await self.resolve(first + 1))
        self.started.remove(key)
        await self.refused(self.cancel(key), NOT_FOUND)

    async def test_parallel_waits_for_all(self):
        await self.deploy("parallel-gateway.bpmn")
        run = self.begin("parallel-gateway")
        left, right = await self.job("par-left"), await self.job("par-right")
        await self.complete(right, r=1)
        self.assertFalse(run.done())
        await self.complete(left, l=2)
        self.assertEqual(await run, {"l": 2, "r": 1})

    async def test_inclusive_waits_for_those_that_were_taken(self):
        await self.deploy("inclusive-gateway.bpmn")
        for x, taken in ((0, ["inc-c"]), (1.5, ["inc-a"]), (5, ["inc-a", "inc-b"])):
            run = self.begin("inclusive-gateway", x=x)
            for job_type in ("inc-a", "inc-b", "inc-c"):
                if job_type not in taken:
                    continue
                await self.no_job("inc-after")
                await self.work(job_type)
            await self.work("inc-after")
            await run
            for job_type in ("inc-a", "inc-b", "inc-c"):
                await self.no_job(job_type)

    async def test_an_inclusive_join_waits_for_a_branch_that_goes_back(self):
        await self.deploy("inclusive-join-tail.bpmn")
        run = self.begin("inclusive-join-tail", again=True)
        await self.work("inct-b")
        await self.work("inct-a", again=True)
        self.assertFalse(run.done())
        await self.work("inct-a", again=False)
        await run

    async def test_an_uneven_join_goes_on_when_each_branch_has_come(self):
        await self.deploy("parallel-join-uneven.bpmn")
        await self.start("parallel-join-uneven")
        await self.work("uneven-a")
        await self.work("uneven-b")
        await self.work("uneven-c")


