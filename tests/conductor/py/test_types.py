"""What each type of task does beyond its plainest use: failures, forms of parameters, cancellations."""

import unittest

from windlass import (
    api, beside, define, define_task, eventually, finish, metadata_api, newest, poll, sentences, shown, simple, start,
    states, task, unique, until,
)


def script(ref, expression, given=None, **more):
    return task("INLINE", ref, {"evaluatorType": "javascript", "expression": expression, **(given or {})}, **more)


def join(ref, on=None, **more):
    return {"name": ref, "taskReferenceName": ref, "type": "JOIN", "joinOn": on or [], **more}


def fork(ref, *branches):
    return {"name": ref, "taskReferenceName": ref, "type": "FORK_JOIN", "forkTasks": list(branches)}


class Types(unittest.TestCase):
    def run_to(self, tasks, given=None, status="COMPLETED", **more):
        return until(start(define(unique("flow"), tasks, **more), given), status)

    def test_decision(self):
        decide = task("DECISION", "d", {"way": "${workflow.input.way}"}, caseValueParam="way",
                      decisionCases={"a": [script("one", "1")], "none": []}, defaultCase=[script("other", "2")])
        for way, taken in [("a", "one"), ("b", "other"), ("none", "other")]:
            workflow = self.run_to([decide], {"way": way})
            self.assertEqual(states(workflow), [("d", "COMPLETED"), (taken, "COMPLETED")])
            self.assertEqual(workflow["tasks"][0]["outputData"], {"caseOutput": [way]})
        scripted = task("DECISION", "d", {"n": "${workflow.input.n}"}, caseExpression="$.n > 1 ? 'many' : 'one'",
                        decisionCases={"many": [script("m", "3")]})
        self.assertEqual(self.run_to([scripted], {"n": 5})["output"], {"result": 3})

    def test_switch_without_a_case(self):
        switch = task("SWITCH", "s", {"way": "${workflow.input.way}"}, evaluatorType="value-param",
                      expression="way", decisionCases={"a": []}, defaultCase=[script("other", "2")])
        self.assertEqual(states(self.run_to([switch], {"way": "a"})), [("s", "COMPLETED")])
        workflow = self.run_to([switch])
        self.assertEqual(workflow["tasks"][0]["outputData"],
                         {"evaluationResult": ["null"], "selectedCase": "null"})
        broken = {**switch, "evaluatorType": "javascript", "expression": "nobody.knows"}
        self.assertEqual(self.run_to([broken], status="FAILED")["tasks"][0]["status"], "FAILED")

    def test_dynamic_forks_of_the_same(self):
        name = unique("each")
        forks = task("FORK_JOIN_DYNAMIC", "f", {
            "forkTaskName": name, "forkTaskInputs": [{"x": 1}, {"x": 2}, {"x": 3}],
        })
        workflow_id = start(define(unique("flow"), [forks, join("j")]))
        seen = {}
        for _ in range(3):
            one = poll(name)
            seen[one["inputData"]["__index"]] = one["inputData"]["x"]
            finish(one, output={"y": one["inputData"]["x"] * 10})
        self.assertEqual(seen, {0: 1, 1: 2, 2: 3})
        joined = newest(until(workflow_id, "COMPLETED"), "j")["outputData"]
        self.assertEqual(sorted(one["y"] for one in joined.values()), [10, 20, 30])

    def test_dynamic_forks_of_workflows(self):
        child = define(unique("child"), [script("i", "$.x * 2", {"x": "${workflow.input.x}"})])
        forks = task("FORK_JOIN_DYNAMIC", "f", {"forkTaskWorkflow": child, "forkTaskInputs": [{"x": 4}, {"x": 5}]})
        workflow = self.run_to([forks, join("j")])
        self.assertEqual([t["taskType"] for t in workflow["tasks"]].count("SUB_WORKFLOW"), 2)
        results = [one["result"] for one in newest(workflow, "j")["outputData"].values()]
        self.assertEqual(sorted(results), [8, 10])

    def test_dynamic_forks_in_their_old_form(self):
        name = unique("each")
        forks = task("FORK_JOIN_DYNAMIC", "f", {"list": [
            {"taskName": name, "referenceName": "a", "type": "SIMPLE", "input": {"x": 1}},
            {"taskName": name, "referenceName": "b", "type": "SIMPLE", "input": {"x": 2}},
        ]}, dynamicForkJoinTasksParam="list")
        workflow_id = start(define(unique("flow"), [forks, join("j")]))
        seen = {}
        for _ in range(2):
            one = poll(name)
            seen[one["referenceTaskName"]] = one["inputData"]["x"]
            finish(one, output={"ok": True})
        self.assertEqual(seen, {"a": 1, "b": 2})
        self.assertEqual(set(newest(until(workflow_id, "COMPLETED"), "j")["outputData"]), {"a", "b"})

    def test_a_fork_into_nothing(self):
        forks = task("FORK_JOIN_DYNAMIC", "f", {"t": [], "i": {}}, dynamicForkTasksParam="t",
                     dynamicForkTasksInputParamName="i")
        self.assertEqual(states(self.run_to([forks, join("j")])), [("f", "COMPLETED"), ("j", "COMPLETED")])

    def test_a_branch_that_fails(self):
        name, other = define_task(unique("fails"), retryCount=0), unique("other")
        workflow_id = start(define(unique("flow"), [
            fork("f", [simple(name, ref="a")], [simple(other, ref="b")]), join("j", ["a", "b"]),
        ]))
        finish(poll(name), "FAILED", reason_for_incompletion="branch")
        workflow = until(workflow_id, "FAILED")
        self.assertEqual(dict(states(workflow))["a"], "FAILED")
        self.assertEqual(dict(states(workflow))["b"], "CANCELED")
        self.assertIn("branch", workflow["reasonForIncompletion"])

    def test_a_branch_that_may_fail(self):
        name = define_task(unique("fails"), retryCount=0)
        workflow_id = start(define(unique("flow"), [
            fork("f", [simple(name, ref="a", optional=True)], [script("b", "1")]), join("j", ["a", "b"]),
        ]))
        finish(poll(name), "FAILED", {"half": 1})
        workflow = until(workflow_id, "COMPLETED")
        self.assertEqual(dict(states(workflow)), {
            "f": "COMPLETED", "a": "COMPLETED_WITH_ERRORS", "b": "COMPLETED", "j": "COMPLETED_WITH_ERRORS",
        })

    def test_a_failure_that_is_told_at_the_end(self):
        name = define_task(unique("fails"), retryCount=0)
        workflow_id = start(define(unique("flow"), [simple(name, ref="a", permissive=True), script("b", "1")]))
        finish(poll(name), "FAILED", reason_for_incompletion="late")
        workflow = until(workflow_id, "FAILED")
        self.assertEqual(states(workflow), [("a", "FAILED"), ("b", "COMPLETED")])
        self.assertIn("late", workflow["reasonForIncompletion"])

    def test_exclusive_join(self):
        switch = task("SWITCH", "s", {"way": "${workflow.input.way}"}, evaluatorType="value-param", expression="way",
                      decisionCases={"a": [script("one", "1")], "b": [script("two", "2")]}, defaultCase=[])
        end = {"name": "x", "taskReferenceName": "x", "type": "EXCLUSIVE_JOIN", "joinOn": ["one", "two"]}
        for way, result in [("a", 1), ("b", 2)]:
            workflow = self.run_to([switch, end], {"way": way})
            self.assertEqual(newest(workflow, "x")["outputData"], {"result": result})
        # With a default, the task before the switch counts when no case was taken.
        end["defaultExclusiveJoinTask"] = ["before"]
        workflow = self.run_to([script("before", "0"), switch, end], {"way": "c"})
        self.assertEqual(newest(workflow, "x")["outputData"], {"result": 0})

    def test_loops_over_items(self):
        loop = task("DO_WHILE", "loop", loopOver=[script("i", "$.item + '!'", {"item": "${loop.output.loopItem}"})],
                    loopCondition="true", items="${workflow.input.items}")
        workflow = self.run_to([loop], {"items": ["a", "b"]})
        output = newest(workflow, "loop")["outputData"]
        self.assertEqual((output["iteration"], output["1"]["i"]["result"], output["2"]["i"]["result"]),
                         (2, "a!", "b!"))
        self.assertEqual(newest(self.run_to([loop], {"items": []}), "loop")["outputData"]["iteration"], 0)

    def test_loops_forget_and_fail(self):
        count = "$.loop['iteration'] < 4"
        loop = task("DO_WHILE", "loop", {"keepLastN": 2}, loopOver=[task("NOOP", "n")], loopCondition=count)
        workflow = self.run_to([loop])
        rounds = newest(workflow, "loop")["outputData"]
        self.assertEqual({key for key in rounds if key.isdigit()}, {"3", "4"})
        broken = task("DO_WHILE", "loop", loopOver=[task("NOOP", "n")], loopCondition="nobody.knows")
        failed = newest(self.run_to([broken], status="FAILED"), "loop")
        self.assertEqual(failed["status"], "FAILED_WITH_TERMINAL_ERROR")
        inner = task("DO_WHILE", "loop", loopOver=[script("bad", "nobody.knows")], loopCondition=count)
        self.assertIn(("bad__1", "FAILED_WITH_TERMINAL_ERROR"), states(self.run_to([inner], status="FAILED")))

    def test_workflows_below_that_end_badly(self):
        worker = define_task(unique("fails"), retryCount=0)
        child = define(unique("child"), [simple(worker)])
        flow = define(unique("flow"), [task("SUB_WORKFLOW", "s", subWorkflowParam={"name": child, "version": 1})])
        workflow_id = start(flow)
        finish(poll(worker), "FAILED", reason_for_incompletion="below")
        sub = newest(until(workflow_id, "FAILED"), "s")
        self.assertEqual(sub["status"], "FAILED")
        self.assertRegex(sub["reasonForIncompletion"],
                         rf"^Sub workflow {child}.1/{sub['subWorkflowId']} failure reason: Task .*'below'$")
        workflow_id = start(flow)
        below = poll(worker)["workflowInstanceId"]
        api("DELETE", f"/workflow/{below}", reason="by hand")
        workflow = until(workflow_id, "TERMINATED")
        self.assertEqual(newest(workflow, "s")["status"], "CANCELED")

    def test_a_workflow_below_that_comes_with_the_task(self):
        definition = {"name": unique("inner"), "version": 1, "tasks": [script("i", "7")]}
        param = {"name": definition["name"], "version": 1, "workflowDefinition": definition}
        workflow = self.run_to([task("SUB_WORKFLOW", "s", {"n": 1}, subWorkflowParam=param)])
        self.assertEqual(newest(workflow, "s")["outputData"]["result"], 7)
        below = shown(newest(workflow, "s")["subWorkflowId"])
        self.assertEqual(below["input"]["_systemMetadata"], {"dynamic": True})

    def test_terminate(self):
        for status, output, wanted in [("COMPLETED", {"x": 1}, {"x": 1}), ("TERMINATED", "text", {"output": "text"})]:
            workflow = self.run_to([
                task("TERMINATE", "t", {"terminationStatus": status, "terminationReason": "r",
                                        "workflowOutput": output}), simple(unique("never")),
            ], status=status)
            self.assertEqual((workflow["output"], len(workflow["tasks"])), (wanted, 1))

    def test_dynamic(self):
        name = define_task(unique("chosen"))
        dynamic = task("DYNAMIC", "d", {"which": "${workflow.input.which}", "x": 1}, dynamicTaskNameParam="which")
        flow = define(unique("flow"), [dynamic])
        workflow_id = start(flow, {"which": name})
        one = poll(name)
        self.assertEqual((one["taskType"], one["inputData"]["x"]), (name, 1))
        finish(one, output={"ok": 1})
        self.assertEqual(until(workflow_id, "COMPLETED")["output"], {"ok": 1})
        failed = until(start(flow), "FAILED", "TERMINATED")
        self.assertTrue(failed["reasonForIncompletion"])

    def test_a_type_of_ones_own(self):
        kind, name = unique("KIND").upper(), define_task(unique("own"))
        workflow_id = start(define(unique("flow"), [{**task(kind, "o", {"x": 2}), "name": name}]))
        one = poll(kind)
        self.assertEqual((one["taskType"], one["taskDefName"], one["inputData"]), (kind, name, {"x": 2}))
        finish(one)
        until(workflow_id, "COMPLETED")

    def test_wait_until_a_time(self):
        workflow = self.run_to([task("WAIT", "w", {"until": "2020-01-02 03:04 GMT"}), task("WAIT", "v", {
            "duration": "0 days 0 h 0 min 1 s"})])
        waited = newest(workflow, "v")
        self.assertGreaterEqual(waited["endTime"] - waited["startTime"], 900)
        both = task("WAIT", "w", {"until": "2020-01-02", "duration": "1 s"})
        self.assertIn("Both", sentences(metadata_api.create, {"name": unique("w"), "tasks": [both]})[0])

    def test_http(self):
        host = beside.configuration.host
        flow = unique("posted")
        body = {"name": flow, "version": 1, "tasks": [task("NOOP", "n")]}
        workflow = self.run_to([
            task("HTTP", "post", {"http_request": {
                "uri": f"{host}/api/metadata/workflow", "method": "POST", "body": body, "accept": "application/json",
                "headers": {"x-made-by": "test"}, "contentType": "application/json",
            }}),
            task("HTTP", "get", {"uri": f"{host}/api/metadata/workflow/${{workflow.input.flow}}", "method": "GET"}),
            task("HTTP", "delete", {"uri": f"{host}/api/metadata/workflow/{flow}/1", "method": "DELETE"}),
        ], {"flow": flow})
        for ref in ("post", "get", "delete"):
            self.assertEqual(newest(workflow, ref)["outputData"]["response"]["statusCode"], 200, ref)
        read = newest(workflow, "get")["outputData"]["response"]
        self.assertEqual((read["body"]["name"], read["headers"]["content-type"]), (flow, ["application/json"]))
        failed = self.run_to([task("HTTP", "h", {"uri": f"{host}/api/workflow/none", "method": "GET"})],
                             status="FAILED")
        self.assertIn("404", failed["tasks"][0]["reasonForIncompletion"])

    def test_http_that_another_completes(self):
        request = {"uri": f"{beside.configuration.host}/api/health", "method": "GET", "asyncComplete": True}
        workflow_id = start(define(unique("flow"), [task("HTTP", "h", request, asyncComplete=True)]))
        answer = eventually(lambda: newest(shown(workflow_id), "h")["outputData"].get("response"))
        self.assertEqual((answer["statusCode"], shown(workflow_id)["status"]), (200, "RUNNING"))
        api("POST", f"/tasks/{workflow_id}/h/COMPLETED", {"by": "hand"})
        self.assertEqual(until(workflow_id, "COMPLETED")["output"]["by"], "hand")

    def test_scripts_that_fail(self):
        for broken, status in [
            (script("i", "throw 'no'"), "FAILED_WITH_TERMINAL_ERROR"),
            (task("LAMBDA", "l", {"scriptExpression": "return nobody.knows"}), "FAILED"),
            (task("JSON_JQ_TRANSFORM", "q", {"queryExpression": ".a.b.c | error"}), "FAILED"),
        ]:
            failed = self.run_to([broken], status="FAILED")["tasks"][0]
            self.assertEqual(failed["status"], status)
            self.assertTrue(failed["reasonForIncompletion"])

    def test_what_is_not_built_in(self):
        publish = task("KAFKA_PUBLISH", "k", {"kafka_request": {
            "bootStrapServers": "127.0.0.1:1", "topic": "t", "value": "v",
        }})
        failed = self.run_to([publish], status="FAILED")["tasks"][0]
        self.assertIn("FAILED", failed["status"])
        self.assertTrue(failed["reasonForIncompletion"])

    def test_expressions(self):
        given = {"a": {"b": [1, {"c": "x"}]}, "n": None, "key": "a"}
        inputs = {
            "whole": "${workflow.input.a}", "path": "${workflow.input.a.b[1].c}", "none": "${workflow.input.z.y}",
            "mixed": "<${workflow.input.a.b[0]}-${workflow.input.z}>", "kept": "$${workflow.input.a}",
            "nested": "${workflow.input.${workflow.input.key}.b[0]}",
            "list": ["${workflow.correlationId}", {"id": "${CPEWF_TASK_ID}"}],
            "status": "${n.status}", "own": "${n.output.nothing}",
        }
        flow = define(unique("flow"), [task("NOOP", "n"), task("SET_VARIABLE", "v", inputs)])
        workflow = until(start(flow, given, correlation_id="c"), "COMPLETED")
        seen = newest(workflow, "v")["inputData"]
        self.assertEqual(seen["list"], ["c", {"id": newest(workflow, "v")["taskId"]}])
        self.assertEqual({key: seen[key] for key in inputs if key != "list"}, {
            "whole": given["a"], "path": "x", "none": None, "mixed": "<1-null>", "kept": "${workflow.input.a}",
            "nested": 1, "status": "COMPLETED", "own": None,
        })


if __name__ == "__main__":
    unittest.main()
