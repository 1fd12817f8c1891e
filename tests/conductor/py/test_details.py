"""Rules that stand between definitions and runs: templates, domains, priorities, limits, schemas, names."""

import unittest

from windlass import (
    api, define, define_task, finish, message, newest, nothing, poll, refused, shown, simple, start, states, task,
    unique, until, until_task, workflows,
)


def sub(ref, name, **more):
    return task("SUB_WORKFLOW", ref, subWorkflowParam={"name": name, "version": 1, **more})


class Inputs(unittest.TestCase):
    def test_the_template_of_a_task(self):
        name = define_task(unique("templated"), inputTemplate={"a": 1, "b": {"c": 2}, "d": 3})
        inputs = {"a": "${workflow.input.a}", "d": "${workflow.input.none}", "e": 5}
        start(define(unique("flow"), [simple(name, inputParameters=inputs)]), {"a": 10})
        self.assertEqual(poll(name)["inputData"], {"a": 10, "b": {"c": 2}, "d": 3, "e": 5})

    def test_the_template_of_a_workflow(self):
        name = define(unique("flow"), [task("HUMAN", "h")], inputTemplate={"a": 1, "b": 2})
        self.assertEqual(shown(start(name, {"a": 9}))["input"], {"a": 9, "b": 2})

    def test_a_definition_written_in_the_workflow_counts(self):
        name = define_task(unique("both"), retryCount=0)
        inline = {"name": name, "retryCount": 1, "retryDelaySeconds": 0, "responseTimeoutSeconds": 77}
        workflow_id = start(define(unique("flow"), [simple(name, ref="t", taskDefinition=inline)]))
        one = poll(name)
        self.assertEqual(one["responseTimeoutSeconds"], 77)
        finish(one, "FAILED")
        finish(poll(name))
        self.assertEqual([s for _, s in states(until(workflow_id, "COMPLETED"))], ["FAILED", "COMPLETED"])

    def test_what_a_workflow_gives(self):
        a, b = unique("a"), unique("b")
        last = start(define(unique("flow"), [simple(a), simple(b)]))
        finish(poll(a), output={"x": 1})
        finish(poll(b), output={"y": 2})
        self.assertEqual(until(last, "COMPLETED")["output"], {"y": 2})
        named = start(define(unique("flow"), [simple(a, ref="a"), simple(b, ref="b")], outputParameters={
            "both": ["${a.output.x}", "${b.output.y}"], "none": "${a.output.z}", "fixed": True,
        }))
        finish(poll(a), output={"x": 1})
        finish(poll(b), output={"y": 2})
        self.assertEqual(until(named, "COMPLETED")["output"], {"both": [1, 2], "none": None, "fixed": True})

    def test_variables_have_a_bound(self):
        large = task("SET_VARIABLE", "v", {"large": "${workflow.input.large}"})
        flow = define(unique("flow"), [large], variables={"kept": 1})
        workflow = until(start(flow, {"large": "x" * 300_000}), "FAILED")
        self.assertEqual(workflow["tasks"][0]["status"], "FAILED_WITH_TERMINAL_ERROR")
        self.assertEqual(workflow["variables"], {"kept": 1})


class Below(unittest.TestCase):
    def test_what_a_workflow_below_takes_over(self):
        worker = unique("worker")
        child = define(unique("child"), [simple(worker)])
        flow = define(unique("flow"), [sub("s", child)])
        workflow_id = start(flow, correlation_id="c", priority=7, task_to_domain={"*": "blue"})
        nothing(worker)
        one = poll(worker, domain="blue")
        below = shown(one["workflowInstanceId"])
        self.assertEqual((below["correlationId"], below["priority"]), ("c", 7))
        self.assertEqual((below["taskToDomain"], below["parentWorkflowId"]), ({"*": "blue"}, workflow_id))
        self.assertEqual(below["parentWorkflowTaskId"], shown(workflow_id)["tasks"][0]["taskId"])
        finish(one)
        until(workflow_id, "COMPLETED")

    def test_a_workflow_below_with_domains_of_its_own(self):
        worker = unique("worker")
        child = define(unique("child"), [simple(worker)])
        start(define(unique("flow"), [sub("s", child, taskToDomain={worker: "red"})]))
        self.assertEqual(poll(worker, domain="red")["domain"], "red")

    def test_the_newest_version_runs_below(self):
        child = define(unique("child"), [task("NOOP", "n")], outputParameters={"v": 1})
        define(child, [task("NOOP", "n")], version=2, outputParameters={"v": 2})
        newer = task("SUB_WORKFLOW", "s", subWorkflowParam={"name": child})
        older = sub("t", child)
        workflow = until(start(define(unique("flow"), [newer, older])), "COMPLETED")
        self.assertEqual([newest(workflow, ref)["outputData"]["v"] for ref in ("s", "t")], [2, 1])

    def test_what_is_not_there_below(self):
        flow = define(unique("flow"), [sub("s", unique("none"))])
        failed = until(start(flow), "FAILED")
        self.assertEqual(len(failed["tasks"]), 1)
        self.assertTrue(failed["reasonForIncompletion"])

    def test_a_workflow_below_times_out(self):
        child = define(unique("child"), [task("HUMAN", "h")], timeoutSeconds=1, timeoutPolicy="TIME_OUT_WF")
        workflow = until(start(define(unique("flow"), [sub("s", child)])), "TIMED_OUT")
        self.assertEqual(newest(workflow, "s")["status"], "TIMED_OUT")

    def test_a_restart_below_revives_those_above(self):
        worker = define_task(unique("fails"), retryCount=0)
        child = define(unique("child"), [simple(worker)])
        workflow_id = start(define(unique("flow"), [sub("s", child)]))
        finish(poll(worker), "FAILED")
        below = newest(until(workflow_id, "FAILED"), "s")["subWorkflowId"]
        workflows.restart_workflow(below)
        finish(poll(worker))
        until(below, "COMPLETED")
        until(workflow_id, "COMPLETED")


class Loops(unittest.TestCase):
    def test_waits_and_choices_in_a_loop(self):
        body = [task("WAIT", "w"), task(
            "SWITCH", "s", {"way": "${w.output.way}"}, evaluatorType="value-param", expression="way",
            decisionCases={"on": [task("NOOP", "n")]}, defaultCase=[],
        )]
        loop = task("DO_WHILE", "loop", loopOver=body, loopCondition="$.w['way'] == 'on'")
        workflow_id = start(define(unique("flow"), [loop]))
        for number, way in [(1, "on"), (2, "on"), (3, "off")]:
            until_task(workflow_id, f"w__{number}")
            api("POST", f"/tasks/{workflow_id}/w/COMPLETED", {"way": way})
        workflow = until(workflow_id, "COMPLETED")
        self.assertEqual(newest(workflow, "loop")["outputData"]["iteration"], 3)
        self.assertEqual([ref for ref, _ in states(workflow) if ref.startswith("n__")], ["n__1", "n__2"])
        self.assertEqual({t["iteration"] for t in workflow["tasks"] if t["loopOverTask"]}, {1, 2, 3})

    def test_a_failure_in_a_loop_is_tried_again(self):
        worker = define_task(unique("moody"), retryCount=1, retryDelaySeconds=0)
        loop = task("DO_WHILE", "loop", loopOver=[simple(worker, ref="t")], loopCondition="$.loop['iteration'] < 2")
        workflow_id = start(define(unique("flow"), [loop]))
        finish(poll(worker), "FAILED")
        for number in (1, 2):
            one = poll(worker)
            self.assertEqual((one["referenceTaskName"], one["iteration"]), (f"t__{number}", number))
            finish(one, output={"n": number})
        rounds = newest(until(workflow_id, "COMPLETED"), "loop")["outputData"]
        self.assertEqual([rounds[key]["t"]["n"] for key in ("1", "2")], [1, 2])


class Limits(unittest.TestCase):
    def test_workflows_wait_for_their_turn(self):
        worker = unique("worker")
        name = define(unique("flow"), [simple(worker)], rateLimitConfig={
            "rateLimitKey": "${workflow.input.who}", "concurrentExecLimit": 1, "policy": "QUEUE",
        })
        a, b = unique("a"), unique("b")
        first, second, other = (start(name, {"who": who}) for who in (a, a, b))
        found = [poll(worker) for _ in range(2)]
        self.assertEqual({one["workflowInstanceId"] for one in found}, {first, other})
        nothing(worker)
        finish(next(one for one in found if one["workflowInstanceId"] == first))
        self.assertEqual(poll(worker)["workflowInstanceId"], second)

    def test_workflows_are_turned_away(self):
        name = define(unique("flow"), [task("HUMAN", "h")], rateLimitConfig={
            "rateLimitKey": unique("key"), "concurrentExecLimit": 1, "policy": "REJECT",
        })
        first = start(name)
        refused(429, start, name)
        workflows.terminate_workflow(first)
        start(name)

    def test_schemas(self):
        schema = {"name": "s", "version": 1, "type": "JSON", "data": {
            "type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}},
        }}
        name = define(unique("flow"), [task("HUMAN", "h")], inputSchema=schema, enforceSchema=True)
        self.assertIn("n", message(400, start, name, {"n": "text"}))
        self.assertEqual(shown(start(name, {"n": 1}))["status"], "RUNNING")
        worker = define_task(unique("strict"), outputSchema=schema, enforceSchema=True, retryCount=3)
        workflow_id = start(define(unique("flow"), [simple(worker, ref="t")]))
        finish(poll(worker), output={"n": "text"})
        self.assertEqual(states(until(workflow_id, "FAILED")), [("t", "FAILED_WITH_TERMINAL_ERROR")])

    def test_a_failure_workflow_may_be_named_by_the_input(self):
        worker = define_task(unique("fails"), retryCount=0)
        mourn = define(unique("mourn"), [task("NOOP", "n")])
        name = define(unique("flow"), [simple(worker)], failureWorkflow="${workflow.input.mourn}")
        workflow_id = start(name, {"mourn": mourn})
        finish(poll(worker), "FAILED")
        by = until(workflow_id, "FAILED")["output"]["conductor.failure_workflow"]
        self.assertEqual(until(by, "COMPLETED")["workflowName"], mourn)
        # Who ends a workflow by hand mourns it himself.
        workflow_id = start(name, {"mourn": mourn})
        workflows.terminate_workflow(workflow_id)
        self.assertNotIn("conductor.failure_workflow", until(workflow_id, "TERMINATED")["output"])


if __name__ == "__main__":
    unittest.main()
