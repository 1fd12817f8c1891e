"""Job workers of pyzeebe: polls and streams, results, failures, errors."""

import asyncio
import contextlib

from pyzeebe import Job, JobController, ZeebeClient, ZeebeWorker
from pyzeebe.errors import (
    ActivateJobsRequestInvalidError,
    JobAlreadyDeactivatedError,
    JobNotFoundError,
)
from pyzeebe.grpc_internals.zeebe_adapter import ZeebeAdapter

from windlass import Scenario, create_job, job_view, unique, until


def states(keys):
    return [job_view(key)["state"] for key in keys]


class Jobs(Scenario):
    @contextlib.asynccontextmanager
    async def working(self, worker):
        work = asyncio.create_task(worker.work())
        try:
            yield
        finally:
            await worker.stop()
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def taken(self, job_type, adapter, timeout=60_000, request_timeout=-1):
        jobs = adapter.activate_jobs(job_type, "py", timeout, 10, [], request_timeout)
        return [job async for job in jobs]

    async def test_the_health_service_says_serving(self):
        health = await ZeebeClient(self.channel).healthcheck()
        self.assertEqual(health.status, 1)

    async def test_the_topology_is_one_broker(self):
        topology = await ZeebeClient(self.channel).topology()
        self.assertEqual(topology.cluster_size, 1)
        self.assertEqual(len(topology.brokers), 1)

    async def test_a_polling_worker(self):
        await self.a_worker(stream_enabled=False)

    async def test_a_streaming_worker(self):
        await self.a_worker(stream_enabled=True)

    async def a_worker(self, stream_enabled):
        job_type = unique("worker")
        worker = ZeebeWorker(self.channel, stream_enabled=stream_enabled, request_timeout=5_000)

        done = []

        @worker.task(task_type=job_type)
        def add(a: int) -> dict:
            done.append(a)
            return {"sum": a + 1}

        for n in range(20):
            create_job(job_type, {"a": n})
        async with self.working(worker):
            await until(lambda: len(done) == 20, "the backlog")
            run = ZeebeClient(self.channel).run_process_with_result(job_type, {"a": 41}, timeout=10_000)
            self.assertEqual((await run).variables, {"a": 41, "sum": 42})
        self.assertEqual(sorted(done), [*range(20), 41])

    async def test_an_exception_fails_the_job_until_it_is_an_incident(self):
        job_type = unique("raises")
        worker = ZeebeWorker(self.channel)
        seen = []

        @worker.task(task_type=job_type)
        def fail(job: Job) -> dict:
            seen.append(job.retries)
            raise ValueError("no")

        key = create_job(job_type, retries=2)
        async with self.working(worker):
            await until(lambda: states([key]) == ["incident"], "the incident")
        self.assertEqual(seen, [2, 1])

    async def test_an_error_that_nobody_catches_is_an_incident(self):
        job_type = unique("error")
        worker = ZeebeWorker(self.channel)

        async def thrown(_exception, _job, controller: JobController):
            await controller.set_error_status("no")

        @worker.task(task_type=job_type, exception_handler=thrown)
        def fail() -> dict:
            raise ValueError("no")

        key = create_job(job_type)
        async with self.working(worker):
            await until(lambda: states([key]) == ["incident"], "the incident")
        self.assertEqual(job_view(key)["incident"]["kind"], "error-not-caught")

    async def test_late_words(self):
        job_type = unique("late")
        adapter = ZeebeAdapter(self.channel)
        key = create_job(job_type)
        jobs = await self.taken(job_type, adapter, timeout=50)
        self.assertEqual([job.key for job in jobs], [key])
        await asyncio.sleep(0.2)
        with self.assertRaises(JobAlreadyDeactivatedError):
            await adapter.fail_job(key, 1, "", 0, {})
        await adapter.complete_job(key, {})
        with self.assertRaises(JobNotFoundError):
            await adapter.complete_job(key, {})

    async def test_a_longer_timeout(self):
        job_type = unique("longer")
        adapter = ZeebeAdapter(self.channel)
        key = create_job(job_type)
        await self.taken(job_type, adapter, timeout=100)
        await adapter.update_job_timeout(key, 60_000)
        await asyncio.sleep(0.3)
        self.assertEqual(await self.taken(job_type, adapter), [])

    async def test_what_is_refused(self):
        adapter = ZeebeAdapter(self.channel)
        with self.assertRaises(ActivateJobsRequestInvalidError):
            await self.taken(" ", adapter)
        with self.assertRaises(JobNotFoundError):
            await adapter.throw_error(1, "", {})
