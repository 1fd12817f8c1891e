"""Timers: durations, dates, cycles; caught, on boundaries, at starts."""

import datetime
import time

from grpc import StatusCode

from processes import Processes

NOT_FOUND = StatusCode.NOT_FOUND


class Timers(Processes):
    async def took(self, awaited):
        began = time.monotonic()
        await awaited
        return time.monotonic() - began

    async def test_a_duration_passes(self):
        await self.deploy("timer-catch.bpmn", "timer-feel.bpmn")
        for run in (self.begin("timer-catch"), self.begin("timer-feel", wait="PT0.5S")):
            took = await self.took(run)
            self.assertLess(took, 2)

    async def test_a_date_is_waited_for_and_one_that_is_over_is_not(self):
        await self.deploy("timer-date.bpmn")
        now = datetime.datetime.now(datetime.timezone.utc)
        soon = now + datetime.timedelta(seconds=1)
        took = await self.took(self.begin("timer-date", at=soon.isoformat()))
        self.assertGreater(took, 0.7)
        self.assertLess(took, 3)
        await self.end("timer-date", at="2001-01-01T00:00:00Z")

    async def test_a_boundary_event_ends_what_takes_too_long(self):
        await self.deploy("timer-boundary.bpmn")
        run = self.begin("timer-boundary")
        job = await self.job("timer-boundary")
        await run
        await self.refused(self.complete(job), NOT_FOUND, "no such job")

    async def test_a_cycle_comes_as_often_as_it_says(self):
        await self.deploy("timer-boundary-cycle.bpmn")
        began = time.monotonic()
        run = self.begin("timer-boundary-cycle")
        for n in range(3):
            await self.work("timer-remind")
            self.assertGreater(time.monotonic() - began, n + 0.9)
        self.assertEqual(await self.jobs("timer-remind", wait_ms=1_200), [])
        await self.work("timer-cycle")
        await run

    async def test_a_start_event_starts_as_often_as_it_says(self):
        await self.deploy("timer-start.bpmn")
        began = time.monotonic()
        for n in range(2):
            await self.work("timer-start")
            self.assertGreater(time.monotonic() - began, n + 0.9)
        self.assertEqual(await self.jobs("timer-start", wait_ms=1_200), [])
