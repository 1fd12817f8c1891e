"""What scenarios about processes share: they are deployed, started, worked on, and awaited."""

import asyncio
import json
import pathlib
import typing

import grpc
from pyzeebe import ZeebeClient
from pyzeebe.proto import gateway_pb2 as messages
from pyzeebe.proto.gateway_pb2_grpc import GatewayStub

from windlass import PATIENCE_S, Scenario

FILES = pathlib.Path(__file__).parent.parent / "processes"
END_MS = PATIENCE_S * 1000


class Job(typing.NamedTuple):
    key: int
    variables: dict
    raw: messages.ActivatedJob


class Processes(Scenario):
    """A test with pyzeebe's client, and with its stub for what the client lacks. The server is its
    own while it runs, and it leaves nothing behind that another one could take for its own."""

    async def asyncSetUp(self):
        await super().asyncSetUp()
        self.client = ZeebeClient(self.channel)
        self.stub = GatewayStub(self.channel)
        self.started = []

    async def asyncTearDown(self):
        for key in self.started:
            try:
                await self.cancel(key)
            except grpc.aio.AioRpcError as error:
                # It has ended.
                self.assertEqual(error.code(), grpc.StatusCode.NOT_FOUND)
        await super().asyncTearDown()

    async def deploy(self, *names):
        return await self.client.deploy_resource(*[FILES / name for name in names])

    async def start(self, process_id, **variables):
        """Starts an instance; answers its key."""
        started = await self.client.run_process(process_id, variables)
        self.started.append(started.process_instance_key)
        return started.process_instance_key

    async def end(self, process_id, **variables):
        """Starts an instance and waits for its end; answers its variables."""
        ended = await self.client.run_process_with_result(process_id, variables, timeout=END_MS)
        return ended.variables

    def begin(self, process_id, **variables):
        """The same, with something to do meanwhile."""
        return asyncio.create_task(self.end(process_id, **variables))

    async def jobs(self, job_type, count=1, wait_ms=END_MS, fetch=()):
        """As many jobs, by age. Fewer when no more come in time."""
        found = []
        while len(found) < count:
            request = messages.ActivateJobsRequest(
                type=job_type,
                worker="py",
                timeout=60_000,
                maxJobsToActivate=count - len(found),
                requestTimeout=wait_ms,
                fetchVariable=fetch,
            )
            came = []
            async for answer in self.stub.ActivateJobs(request):
                came += [Job(job.key, json.loads(job.variables), job) for job in answer.jobs]
            if not came:
                break
            found += came
        return sorted(found)

    async def job(self, job_type, **options):
        jobs = await self.jobs(job_type, **options)
        self.assertEqual(len(jobs), 1, f"no job of type {job_type} came")
        return jobs[0]

    async def no_job(self, job_type):
        self.assertEqual(await self.jobs(job_type, wait_ms=100), [])

    async def complete(self, job, **variables):
        request = messages.CompleteJobRequest(jobKey=job.key, variables=json.dumps(variables))
        await self.stub.CompleteJob(request)

    async def fail_job(self, job, retries, back_off=0, **variables):
        request = messages.FailJobRequest(
            jobKey=job.key,
            retries=retries,
            errorMessage="no",
            retryBackOff=back_off,
            variables=json.dumps(variables),
        )
        await self.stub.FailJob(request)

    async def throw(self, job, code, **variables):
        request = messages.ThrowErrorRequest(
            jobKey=job.key, errorCode=code, variables=json.dumps(variables)
        )
        await self.stub.ThrowError(request)

    async def work(self, job_type, **variables):
        """Takes and completes a job; answers what it saw."""
        job = await self.job(job_type)
        await self.complete(job, **variables)
        return job

    async def publish(self, name, correlation_key, **variables):
        await self.client.publish_message(name, correlation_key, variables)

    async def signal(self, name, **variables):
        await self.client.broadcast_signal(name, variables)

    async def cancel(self, key):
        request = messages.CancelProcessInstanceRequest(processInstanceKey=key)
        await self.stub.CancelProcessInstance(request)

    async def set_variables(self, scope, local=False, **variables):
        request = messages.SetVariablesRequest(
            elementInstanceKey=scope, variables=json.dumps(variables), local=local
        )
        await self.stub.SetVariables(request)

    async def resolve(self, near):
        """Resolves the incident that came next after the key `near`: this wire does not tell its
        key. Answers it, or None when there is none."""
        for key in range(near, near + 100):
            try:
                await self.stub.ResolveIncident(messages.ResolveIncidentRequest(incidentKey=key))
                return key
            except grpc.aio.AioRpcError as error:
                self.assertEqual(error.code(), grpc.StatusCode.NOT_FOUND, error.details())
        return None

    async def refused(self, call, code, words=""):
        with self.assertRaises(grpc.aio.AioRpcError) as caught:
            await call
        self.assertEqual(caught.exception.code(), code, caught.exception.details())
        self.assertIn(words, caught.exception.details())
