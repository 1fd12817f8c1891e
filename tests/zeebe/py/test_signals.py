"""Signals: caught, on boundaries, at starts, thrown by events."""

from grpc import StatusCode

from processes import Processes

NOT_FOUND = StatusCode.NOT_FOUND


class Signals(Processes):
    async def test_everybody_who_waits_gets_it(self):
        await self.deploy("signal-catch.bpmn")
        keys = [await self.start("signal-catch") for _ in range(2)]
        run = self.begin("signal-catch", a=1)
        while not run.done():
            await self.signal("scenario-signal", p=2)
        self.assertEqual(await run, {"a": 1, "p": 2})
        for key in keys:
            await self.refused(self.cancel(key), NOT_FOUND)

    async def test_a_boundary_event_hears_each(self):
        await self.deploy("signal-boundary.bpmn")
        await self.start("signal-boundary")
        slow = await self.job("signal-boundary")
        for n in range(2):
            await self.signal("scenario-signal", n=n)
            await self.work("signal-seen")
        await self.complete(slow)

    async def test_a_signal_starts_an_instance_and_an_event_throws_it(self):
        await self.deploy("signal-start.bpmn", "signal-throw.bpmn", "signal-boundary.bpmn")
        await self.start("signal-boundary")
        slow = await self.job("signal-boundary")
        await self.end("signal-throw", other=1)
        seen = await self.work("signal-seen")
        self.assertEqual(seen.variables, {"payload": 7})
        await self.complete(slow)
        self.assertEqual((await self.work("signal-start")).variables, {})
