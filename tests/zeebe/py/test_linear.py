"""Tasks in a row, mappings, headers, and elements that pass by themselves."""

from processes import Processes


class Linear(Processes):
    async def test_ten_tasks_one_after_the_other(self):
        await self.deploy("ten-tasks.bpmn")
        run = self.begin("ten-tasks", n=0)
        for n in range(10):
            job = await self.work("ten-tasks", n=n + 1)
            self.assertEqual(job.variables, {"n": n})
            await self.no_job("ten-tasks") if n == 9 else None
        self.assertEqual(await run, {"n": 10})

    async def test_elements_without_work_pass(self):
        await self.deploy("pass-through.bpmn", "ornaments.bpmn", "no-task.bpmn", "two-processes.bpmn")
        for process in ("pass-through", "no-task", "two-a", "two-b"):
            self.assertEqual(await self.end(process, a=1), {"a": 1})

    async def test_inputs_are_local_and_outputs_are_kept(self):
        await self.deploy("io-mapping.bpmn")
        run = self.begin("io-mapping", order={"id": "o-1", "total": 21}, outcome={"kept": 1})
        job = await self.work("io-mapping", result={"ok": True}, more=5)
        self.assertEqual(job.variables["orderId"], "o-1")
        self.assertEqual(job.variables["price"], {"amount": 42, "currency": "EUR"})
        self.assertEqual(
            await run,
            {
                "order": {"id": "o-1", "total": 21},
                "outcome": {"kept": 1, "ok": True, "order": "o-1"},
            },
        )

    async def test_without_an_order_its_id_is_null(self):
        await self.deploy("io-mapping.bpmn")
        run = self.begin("io-mapping")
        job = await self.work("io-mapping", result={"ok": True})
        self.assertIsNone(job.variables["orderId"])
        self.assertEqual(await run, {"outcome": {"ok": True, "order": None}})

    async def test_type_and_retries_are_expressions(self):
        await self.deploy("task-feel-type.bpmn")
        await self.start("task-feel-type", kind="feel", tries=7)
        job = await self.job("feel-job")
        self.assertEqual(job.raw.retries, 7)
        await self.complete(job)

    async def test_a_job_tells_where_it_stands(self):
        answer = await self.deploy("one-task.bpmn")
        key = await self.start("one-task", a=1)
        job = (await self.job("one-task")).raw
        self.assertEqual(job.processInstanceKey, key)
        self.assertEqual(job.bpmnProcessId, "one-task")
        self.assertEqual(job.processDefinitionVersion, 1)
        self.assertEqual(job.processDefinitionKey, answer.deployments[0].process_definition_key)
        self.assertEqual(job.elementId, "task")
        self.assertGreater(job.elementInstanceKey, key)
        self.assertEqual(job.tenantId, "<default>")
        self.assertEqual(job.retries, 3)

    async def test_send_and_throw_and_rule_and_script_can_be_jobs(self):
        await self.deploy("send-task.bpmn", "message-throw.bpmn", "business-rule-job.bpmn")
        await self.deploy("script-task-job.bpmn")
        run = self.begin("send-task")
        await self.work("send")
        await run
        run = self.begin("message-throw")
        await self.work("publish")
        await self.work("publish-end")
        await run
        run = self.begin("business-rule-job")
        await self.work("rule", ruled=1)
        self.assertEqual(await run, {"ruled": 1})
