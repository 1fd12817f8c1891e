"""Messages: start, catch, receive, boundary, event gateway; buffered, correlated once."""

from grpc import StatusCode
from pyzeebe.errors import MessageAlreadyExistsError

from processes import Processes
from windlass import unique

NOT_FOUND = StatusCode.NOT_FOUND


class Messages(Processes):
    async def test_a_catch_event_takes_what_it_waits_for(self):
        await self.deploy("message-catch.bpmn", "receive-task.bpmn")
        for process, name in (("message-catch", "scenario-catch"), ("receive-task", "scenario-receive")):
            key = unique("k")
            run = self.begin(process, key=key)
            await self.publish(name, unique("other"), p=0)
            await self.publish(name, key, p=1)
            self.assertEqual(await run, {"key": key, "p": 1})

    async def test_the_oldest_buffered_message_comes_first_and_each_once(self):
        await self.deploy("message-catch.bpmn")
        key = unique("k")
        await self.publish("scenario-catch", key, p=1)
        await self.publish("scenario-catch", key, p=2)
        self.assertEqual((await self.end("message-catch", key=key))["p"], 1)
        self.assertEqual((await self.end("message-catch", key=key))["p"], 2)

    async def test_one_message_goes_to_one_instance_of_a_process(self):
        await self.deploy("message-catch.bpmn")
        key = unique("k")
        first = await self.start("message-catch", key=key)
        run = self.begin("message-catch", key=key)
        await self.publish("scenario-catch", key, p=1)
        self.assertFalse(run.done())
        await self.publish("scenario-catch", key, p=2)
        self.assertEqual((await run)["p"], 2)
        await self.refused(self.cancel(first), NOT_FOUND)

    async def test_an_id_is_taken_while_it_is_buffered(self):
        key = unique("k")
        publish = lambda: self.client.publish_message("m", key, {}, message_id="id")
        await publish()
        with self.assertRaises(MessageAlreadyExistsError):
            await publish()

    async def test_a_message_starts_one_instance_of_its_key_at_a_time(self):
        await self.deploy("message-start.bpmn")
        key = unique("k")
        await self.publish("scenario-start", key, n=1)
        await self.publish("scenario-start", key, n=2)
        first = await self.job("message-start")
        self.assertEqual(first.variables, {"n": 1})
        await self.no_job("message-start")
        await self.complete(first)
        self.assertEqual((await self.work("message-start")).variables, {"n": 2})

    async def test_an_empty_key_starts_as_many_as_come(self):
        await self.deploy("message-start.bpmn")
        await self.publish("scenario-start", "", n=1)
        await self.publish("scenario-start", "", n=2)
        jobs = await self.jobs("message-start", 2)
        self.assertEqual([job.variables["n"] for job in jobs], [1, 2])
        for job in jobs:
            await self.complete(job)

    async def test_a_boundary_event_ends_the_task(self):
        await self.deploy("message-boundary.bpmn")
        key = unique("k")
        run = self.begin("message-boundary", key=key)
        job = await self.job("message-boundary")
        await self.publish("scenario-stop", key, why="x")
        stopped = await self.work("message-boundary-stopped")
        self.assertEqual(stopped.variables["why"], "x")
        await run
        await self.refused(self.complete(job), NOT_FOUND, "no such job")

    async def test_an_open_boundary_event_makes_a_token_for_each(self):
        await self.deploy("message-boundary-open.bpmn")
        key = unique("k")
        run = self.begin("message-boundary-open", key=key)
        slow = await self.job("message-boundary-open")
        await self.publish("scenario-ping", key)
        await self.publish("scenario-ping", key)
        for _ in range(2):
            await self.work("message-boundary-pinged")
        self.assertFalse(run.done())
        await self.complete(slow)
        await run

    async def test_an_event_gateway_goes_where_something_happens_first(self):
        await self.deploy("event-gateway.bpmn")
        key = unique("k")
        run = self.begin("event-gateway", key=key, limit="PT60S")
        await self.publish("event-gateway-told", key, told=1)
        self.assertEqual((await run)["told"], 1)
        self.assertNotIn("told", await self.end("event-gateway", key=key, limit="PT0.1S"))

    async def test_a_number_is_a_key_too(self):
        await self.deploy("message-catch.bpmn")
        run = self.begin("message-catch", key=7)
        await self.publish("scenario-catch", "7", p=1)
        self.assertEqual((await run)["p"], 1)


