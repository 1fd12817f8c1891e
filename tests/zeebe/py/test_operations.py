"""What people do to instances: cancel, modify, migrate, delete, set variables, mend incidents."""

from grpc import StatusCode
from pyzeebe.proto import gateway_pb2 as messages

from processes import Processes

NOT_FOUND = StatusCode.NOT_FOUND
STATE = StatusCode.FAILED_PRECONDITION


class Operations(Processes):
    async def test_modify_enters_and_ends(self):
        await self.deploy("one-task.bpmn")
        key = await self.start("one-task", a=1)
        first = await self.job("one-task")
        request = messages.ModifyProcessInstanceRequest
        await self.stub.ModifyProcessInstance(
            request(
                processInstanceKey=key,
                activateInstructions=[
                    request.ActivateInstruction(
                        elementId="task",
                        variableInstructions=[
                            request.VariableInstruction(variables='{"g":1}'),
                            request.VariableInstruction(variables='{"l":2}', scopeId="task"),
                        ],
                    )
                ],
                terminateInstructions=[
                    request.TerminateInstruction(elementInstanceKey=first.raw.elementInstanceKey)
                ],
            )
        )
        await self.refused(self.complete(first), NOT_FOUND)
        second = await self.work("one-task")
        self.assertEqual(second.variables, {"a": 1, "g": 1, "l": 2})

    async def test_migrate_goes_on_elsewhere(self):
        await self.deploy("version-two-migrate-a.bpmn")
        target = await self.deploy("version-two-migrate-b.bpmn")
        key = await self.start("migrate-a", v=1)
        request = messages.MigrateProcessInstanceRequest
        plan = request.MigrationPlan(
            targetProcessDefinitionKey=target.deployments[0].process_definition_key,
            mappingInstructions=[
                request.MappingInstruction(sourceElementId="old", targetElementId="fresh")
            ],
        )
        await self.stub.MigrateProcessInstance(request(processInstanceKey=key, migrationPlan=plan))
        job = await self.work("migrate-job")
        self.assertEqual((job.raw.elementId, job.raw.bpmnProcessId), ("fresh", "migrate-b"))
        self.assertEqual((await self.work("migrate-extra")).raw.bpmnProcessId, "migrate-b")

    async def test_delete_forgets(self):
        answer = await self.deploy("ten-tasks.bpmn")
        key = answer.deployments[0].process_definition_key
        instance = await self.start("ten-tasks")
        delete = lambda: self.stub.DeleteResource(messages.DeleteResourceRequest(resourceKey=key))
        await self.refused(delete(), STATE, "running instances")
        await self.cancel(instance)
        await delete()
        await self.refused(delete(), NOT_FOUND)

    async def test_a_job_without_retries_is_mended(self):
        await self.deploy("one-task.bpmn")
        run = self.begin("one-task", a=1)
        job = await self.job("one-task")
        await self.fail_job(job, 0, why="x")
        await self.refused(self.complete(job), STATE, "in state 'FAILED'")
        await self.stub.UpdateJobRetries(messages.UpdateJobRetriesRequest(jobKey=job.key, retries=2))
        await self.no_job("one-task")
        self.assertIsNotNone(await self.resolve(job.key))
        again = await self.work("one-task")
        self.assertEqual((again.key, again.raw.retries), (job.key, 2))
        self.assertEqual(again.variables, {"a": 1, "why": "x"})
        # What the failure brought was the task's own.
        self.assertEqual(await run, {"a": 1})

    async def test_a_retry_expression_that_fails_is_mended(self):
        await self.deploy("task-feel-type.bpmn")
        key = await self.start("task-feel-type", kind="mended")
        await self.set_variables(key, tries=2)
        self.assertIsNotNone(await self.resolve(key))
        self.assertEqual((await self.work("mended-job")).raw.retries, 2)

    async def test_cancel_ends_everything(self):
        await self.deploy("parallel-gateway.bpmn")
        key = await self.start("parallel-gateway")
        jobs = [await self.job("par-left"), await self.job("par-right")]
        await self.cancel(key)
        for job in jobs:
            await self.refused(self.complete(job), NOT_FOUND)
        await self.refused(self.cancel(key), NOT_FOUND)
