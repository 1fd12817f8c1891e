"""Decisions and scripts: evaluated by themselves and by tasks."""

from processes import Processes


class Decisions(Processes):
    async def decide(self, decision, **variables):
        answer = await self.client.evaluate_decision(None, decision, variables)
        return answer.decision_output

    async def test_hit_policies(self):
        tables = ["any", "collect", "collect-count", "collect-max", "collect-min", "collect-sum"]
        tables += ["first", "output-order", "priority", "rule-order", "unique"]
        deployed = {}
        for table in tables:
            answer = await self.deploy(f"decision-{table}.dmn")
            ids = [it.dmn_decision_id for it in answer.deployments if hasattr(it, "dmn_decision_id")]
            deployed[table] = ids[0]
        for table, amount, expected in (
            ("unique", 50, {"way": "post", "fee": 5}),
            ("first", 35, "low"),
            ("any", 35, "same"),
            ("priority", 35, "high"),
            ("rule-order", 35, ["low", "mid", "high"]),
            ("output-order", 35, ["high", "mid", "low"]),
            ("collect", 35, [1, 2, 4]),
            ("collect-sum", 35, 7),
            ("collect-min", 35, 1),
            ("collect-max", 35, 4),
            ("collect-count", 35, 3),
            ("first", 5, None),
            ("collect", 5, None),
            ("collect-sum", 5, None),
            ("collect-count", 5, None),
        ):
            with self.subTest(table=table, amount=amount):
                self.assertEqual(await self.decide(deployed[table], amount=amount), expected)

    async def test_a_decision_may_require_others_and_be_an_expression(self):
        for name in ("requirements", "literal"):
            answer = await self.deploy(f"decision-{name}.dmn")
            ids = [it.dmn_decision_id for it in answer.deployments if hasattr(it, "dmn_decision_id")]
            for decision in ids:
                answer = await self.client.evaluate_decision(None, decision, {"amount": 50, "x": 2})
                self.assertFalse(answer.failure_message, decision)

    async def test_a_task_asks_a_decision(self):
        await self.deploy("decision-unique.dmn", "business-rule-decision.bpmn")
        self.assertEqual(
            await self.end("business-rule-decision", amount=500),
            {"amount": 500, "shipping": {"way": "van", "fee": 0}},
        )

    async def test_scripts(self):
        await self.deploy("script-task.bpmn", "script-task-output.bpmn")
        self.assertEqual(await self.end("script-task", x=2), {"x": 2, "y": 5})
        self.assertEqual(await self.end("script-task"), {"y": None})
        self.assertEqual(await self.end("script-task-output", x=2), {"x": 2, "picked": 3})
