"""Every kind of task in workflows, as the Python SDK's clients see them."""

import time
import unittest

from windlass import (
    call, define, define_task, finish, poll, shown, simple, start, states, unique, until, workflows,
)


def task(kind, ref, given=None, **more):
    return {"name": ref, "taskReferenceName": ref, "type": kind, "inputParameters": given or {}, **more}


class Flows(unittest.TestCase):
    def run_to(self, task_list, given=None, status="COMPLETED", **more):
        workflow_id = start(define(unique("flow"), task_list, **more), given)
        return until(workflow_id, status)

    def test_switch(self):
        a, b = unique("a"), unique("b")
        switch = task(
            "SWITCH", "s", {"way": "${workflow.input.way}"}, evaluatorType="value-param",
            expression="way", decisionCases={"a": [simple(a)]}, defaultCase=[simple(b)],
        )
        flow = define(unique("flow"), [switch])
        for way, name in [("a", a), ("x", b)]:
            workflow_id = start(flow, {"way": way})
            finish(poll(name))
            workflow = until(workflow_id, "COMPLETED")
            self.assertEqual(workflow["tasks"][0]["outputData"]["selectedCase"], way)

    def test_switch_by_script(self):
        name = unique("big")
        switch = task(
            "SWITCH", "s", {"n": "${workflow.input.n}"}, evaluatorType="javascript",
            expression="$.n > 10 ? 'big' : 'small'", decisionCases={"big": [simple(name)]},
        )
        flow = define(unique("flow"), [switch])
        until(start(flow, {"n": 1}), "COMPLETED")
        workflow_id = start(flow, {"n": 11})
        finish(poll(name))
        until(workflow_id, "COMPLETED")

    def test_fork_and_join(self):
        a, b = unique("a"), unique("b")
        workflow_id = start(define(unique("flow"), [
            {"name": "f", "taskReferenceName": "f", "type": "FORK_JOIN",
             "forkTasks": [[simple(a, ref="a")], [simple(b, ref="b")]]},
            {"name": "j", "taskReferenceName": "j", "type": "JOIN", "joinOn": ["a", "b"]},
        ]))
        finish(poll(b), output={"r": "b"})
        finish(poll(a), output={"r": "a"})
        workflow = until(workflow_id, "COMPLETED")
        self.assertEqual(workflow["output"], {"a": {"r": "a"}, "b": {"r": "b"}})
        self.assertEqual(workflow["tasks"][0]["taskType"], "FORK")

    def test_dynamic_fork(self):
        name = unique("each")
        workflow_id = start(define(unique("flow"), [
            task("FORK_JOIN_DYNAMIC", "f", {"t": "${workflow.input.t}", "i": "${workflow.input.i}"},
                 dynamicForkTasksParam="t", dynamicForkTasksInputParamName="i"),
            {"name": "j", "taskReferenceName": "j", "type": "JOIN"},
        ]), {"t": [simple(name, ref="x"), simple(name, ref="y")], "i": {"x": {"n": 1}, "y": {"n": 2}}})
        seen = {}
        for _ in range(2):
            one = poll(name)
            seen[one["referenceTaskName"]] = one["inputData"]
            finish(one, output=one["inputData"])
        self.assertEqual(seen, {"x": {"n": 1}, "y": {"n": 2}})
        self.assertEqual(until(workflow_id, "COMPLETED")["output"], seen)

    def test_do_while(self):
        name = unique("body")
        workflow_id = start(define(unique("flow"), [
            task("DO_WHILE", "loop", {"max": 3}, loopOver=[simple(name, ref="body")],
                 loopCondition="if ($.loop['iteration'] < $.max) { true; } else { false; }"),
        ]))
        for n in (1, 2, 3):
            one = poll(name)
            self.assertEqual(one["referenceTaskName"], f"body__{n}")
            finish(one, output={"n": n})
        workflow = until(workflow_id, "COMPLETED")
        output = workflow["tasks"][0]["outputData"]
        self.assertEqual(output["iteration"], 3)
        self.assertEqual(output["2"], {"body": {"n": 2}})

    def test_sub_workflow(self):
        name = unique("inner")
        child = define(unique("child"), [simple(name)], outputParameters={"r": f"${{{name}.output.r}}"})
        workflow_id = start(define(unique("parent"), [
            task("SUB_WORKFLOW", "sub", {"n": 1}, subWorkflowParam={"name": child, "version": 1}),
        ]))
        one = poll(name)
        finish(one, output={"r": 5})
        workflow = until(workflow_id, "COMPLETED")
        self.assertEqual(workflow["output"]["r"], 5)
        self.assertEqual(workflow["tasks"][0]["subWorkflowId"], one["workflowInstanceId"])
        inner = shown(one["workflowInstanceId"])
        self.assertEqual(inner["parentWorkflowId"], workflow_id)
        self.assertEqual(inner["input"], {"n": 1})

    def test_start_workflow(self):
        child = define(unique("child"), [task("NOOP", "n")])
        workflow = self.run_to([task("START_WORKFLOW", "s", {"startWorkflow": {"name": child, "input": {"a": 1}}})])
        until(workflow["output"]["workflowId"], "COMPLETED")

    def test_terminate(self):
        workflow = self.run_to([
            task("TERMINATE", "t", {"terminationStatus": "FAILED", "terminationReason": "enough",
                                    "workflowOutput": {"x": 1}}),
            simple("never"),
        ], status="FAILED")
        self.assertEqual(workflow["output"], {"x": 1})
        self.assertEqual(workflow["reasonForIncompletion"], "enough")

    def test_variables_and_scripts(self):
        workflow = self.run_to([
            task("SET_VARIABLE", "v", {"n": "${workflow.input.n}"}),
            task("INLINE", "i", {"n": "${workflow.variables.n}", "evaluatorType": "javascript",
                                 "expression": "(function(){ return {twice: $.n * 2}; })();"}),
            task("LAMBDA", "l", {"n": "${i.output.result.twice}", "scriptExpression": "return $.n + 1;"}),
        ], {"n": 20})
        self.assertEqual(workflow["output"], {"result": 41})

    def test_scripts_that_need_the_sandbox(self):
        workflow = self.run_to([
            task("INLINE", "i", {
                "evaluatorType": "javascript",
                "expression": "class A { get x() { return [...'abc'].reverse().join(''); } } new A().x",
            }),
        ])
        self.assertEqual(workflow["output"]["result"], "cba")
        workflow = self.run_to([
            task("INLINE", "i", {"evaluatorType": "javascript", "expression": "while (true) {}"}),
        ], status="FAILED")
        self.assertEqual(workflow["tasks"][0]["status"], "FAILED_WITH_TERMINAL_ERROR")

    def test_jq(self):
        workflow = self.run_to([
            task("JSON_JQ_TRANSFORM", "q", {"list": [3, 1, 2], "queryExpression": ".list | sort, add"}),
        ])
        self.assertEqual(workflow["output"]["result"], [1, 2, 3])
        self.assertEqual(workflow["output"]["resultList"], [[1, 2, 3], 6])
        workflow = self.run_to([task("JSON_JQ_TRANSFORM", "q", {"queryExpression": ".x | ("})], status="FAILED")
        self.assertTrue(workflow["tasks"][0]["outputData"]["error"])

    def test_wait_and_human(self):
        workflow_id = start(define(unique("flow"), [
            task("WAIT", "short", {"duration": "1 s"}), task("WAIT", "open"), task("HUMAN", "h"),
        ]))
        until(workflow_id, "RUNNING")
        call("POST", f"/tasks/{workflow_id}/nothing/COMPLETED", 200, json={})
        for ref in ("open", "h"):
            for _ in range(300):
                if (ref, "IN_PROGRESS") in states(shown(workflow_id)):
                    break
                time.sleep(0.02)
            call("POST", f"/tasks/{workflow_id}/{ref}/COMPLETED", 200, json={"by": ref})
        workflow = until(workflow_id, "COMPLETED")
        self.assertEqual(workflow["output"], {"by": "h"})

    def test_dynamic_and_events(self):
        name = unique("chosen")
        workflow_id = start(define(unique("flow"), [
            task("DYNAMIC", "d", {"which": name}, dynamicTaskNameParam="which"),
        ]))
        finish(poll(name))
        until(workflow_id, "COMPLETED")
        started = define(unique("started"), [task("NOOP", "n")])
        publisher = unique("publisher")
        handler = {
            "name": unique("handler"), "event": f"conductor:{publisher}:e", "active": True,
            "actions": [{"action": "start_workflow",
                         "start_workflow": {"name": started, "input": {"x": "${x}"}}}],
        }
        call("POST", "/event", 200, json=handler)
        call("POST", "/event", 409, json=handler)
        define(publisher, [task("EVENT", "e", {"x": 7}, sink="conductor")])
        until(start(publisher), "COMPLETED")
        running = [h for h in call("GET", "/event", 200).json() if h["name"] == handler["name"]]
        self.assertEqual(len(running), 1)
        call("DELETE", f"/event/{handler['name']}", 200)

    def test_http(self):
        port_url = call("GET", "/health", 200).url
        workflow = self.run_to([
            task("HTTP", "h", {"http_request": {"uri": port_url, "method": "GET"}}),
        ])
        response = workflow["output"]["response"]
        self.assertEqual(response["statusCode"], 200)
        self.assertTrue(response["body"]["healthy"])
        workflow = self.run_to([
            task("HTTP", "h", {"uri": port_url + "/no", "method": "GET"}),
        ], status="FAILED")
        self.assertIn("Failed to invoke HTTP task", workflow["tasks"][0]["reasonForIncompletion"])

    def test_optional_and_failure_workflow(self):
        name, mourn = unique("fails"), unique("mourn")
        define_task(name, retryCount=0)
        define(mourn, [task("NOOP", "n")])
        workflow_id = start(define(unique("flow"), [
            simple(name, ref="maybe", optional=True), simple(name, ref="must"),
        ], failureWorkflow=mourn))
        finish(poll(name), "FAILED")
        finish(poll(name), "FAILED")
        workflow = until(workflow_id, "FAILED")
        self.assertEqual(states(workflow), [("maybe", "COMPLETED_WITH_ERRORS"), ("must", "FAILED")])
        mourning = until(workflow["output"]["conductor.failure_workflow"], "COMPLETED")
        self.assertEqual(mourning["input"]["workflowId"], workflow_id)

    def test_execute_waits_for_the_end(self):
        flow = define(unique("flow"), [task("SET_VARIABLE", "v", {"a": 1})])
        run = call("POST", f"/workflow/execute/{flow}/1?requestId=r", 200, json={}).json()
        self.assertEqual(run["status"], "COMPLETED")
        self.assertEqual(run["responseType"], "TARGET_WORKFLOW")
        waiting = define(unique("flow"), [task("WAIT", "w")])
        run = call("POST", f"/workflow/execute/{waiting}/1?requestId=r", 200, json={}).json()
        self.assertEqual(run["status"], "RUNNING")
        run = call(
            "POST", f"/tasks/{run['workflowId']}/COMPLETED/signal/sync", 200, json={"x": 1}
        ).json()
        self.assertEqual(run["status"], "COMPLETED")

    def test_workflow_test_feeds_mocks(self):
        flow = define(unique("flow"), [simple(unique("a"), ref="a"), simple(unique("b"), ref="b")],
                      outputParameters={"r": "${b.output.r}"})
        run = call("POST", "/workflow/test", 200, json={
            "name": flow, "version": 1, "input": {},
            "taskRefToMockOutput": {"a": [{"status": "COMPLETED", "output": {}}],
                                    "b": [{"status": "COMPLETED", "output": {"r": 3}}]},
        }).json()
        self.assertEqual(run["status"], "COMPLETED")
        self.assertEqual(run["output"], {"r": 3})


class Control(unittest.TestCase):
    def test_pause_resume_terminate_restart(self):
        a, b = unique("a"), unique("b")
        workflow_id = start(define(unique("flow"), [simple(a), simple(b)]))
        workflows.pause_workflow(workflow_id)
        self.assertEqual(shown(workflow_id)["status"], "PAUSED")
        finish(poll(a))
        workflows.resume_workflow(workflow_id)
        call("PUT", f"/workflow/{workflow_id}/resume", 500)
        workflows.terminate_workflow(workflow_id, "enough")
        workflow = until(workflow_id, "TERMINATED")
        self.assertEqual(workflow["reasonForIncompletion"], "enough")
        workflows.restart_workflow(workflow_id)
        finish(poll(a))
        finish(poll(b))
        until(workflow_id, "COMPLETED")
        call("DELETE", f"/workflow/{workflow_id}", 409)
        call("PUT", f"/workflow/{workflow_id}/pause", 409)

    def test_retry_and_rerun(self):
        a, b = unique("a"), define_task(unique("b"), retryCount=0)
        workflow_id = start(define(unique("flow"), [simple(a), simple(b)]))
        first = poll(a)
        finish(first)
        finish(poll(b), "FAILED")
        until(workflow_id, "FAILED")
        workflows.retry_workflow(workflow_id)
        finish(poll(b), "FAILED")
        until(workflow_id, "FAILED")
        body = {"reRunFromTaskId": first["taskId"], "taskInput": {"again": True}}
        answer = call("POST", f"/workflow/{workflow_id}/rerun", 200, json=body)
        self.assertEqual(answer.text, workflow_id)
        again = poll(a)
        self.assertEqual(again["inputData"], {"again": True})
        finish(again)
        finish(poll(b))
        until(workflow_id, "COMPLETED")
        call("POST", f"/workflow/{workflow_id}/retry", 409)

    def test_skip(self):
        a, b, c = unique("a"), unique("b"), unique("c")
        workflow_id = start(define(unique("flow"), [simple(a), simple(b, ref="b"), simple(c)]))
        call("PUT", f"/workflow/{workflow_id}/skiptask/b", 200, json={"taskOutput": {"x": 1}})
        finish(poll(a))
        finish(poll(c))
        workflow = until(workflow_id, "COMPLETED")
        skipped = [t for t in workflow["tasks"] if t["referenceTaskName"] == "b"]
        self.assertEqual((skipped[0]["status"], skipped[0]["outputData"]), ("SKIPPED", {"x": 1}))

    def test_removal_and_what_is_not_there(self):
        flow = define(unique("flow"), [task("NOOP", "n")])
        workflow_id = start(flow)
        until(workflow_id, "COMPLETED")
        workflows.delete_workflow(workflow_id)
        refused = call("GET", f"/workflow/{workflow_id}", 404).json()
        self.assertEqual(refused["message"], f"No such workflow found by id: {workflow_id}")
        call("POST", "/workflow", 404, json={"name": unique("no"), "input": {}})
        call("GET", "/nowhere", 404)
        call("PATCH", "/workflow", 405)
        broken = call("POST", "/workflow", 500, data="{", headers={"content-type": "application/json"})
        self.assertEqual(broken.json()["status"], 500)

    def test_correlation_running_and_bulk(self):
        flow = define(unique("flow"), [task("HUMAN", "h")])
        correlation = unique("c")
        ids = [start(flow, correlation_id=correlation) for _ in range(3)]
        found = call("GET", f"/workflow/{flow}/correlated/{correlation}", 200).json()
        self.assertEqual({w["workflowId"] for w in found}, set(ids))
        self.assertEqual(set(call("GET", f"/workflow/running/{flow}", 200).json()), set(ids))
        answer = call("PUT", "/workflow/bulk/pause", 200, json=ids + ["no"]).json()
        self.assertEqual(set(answer["bulkSuccessfulResults"]), set(ids))
        self.assertIn("no", answer["bulkErrorResults"])
        call("PUT", "/workflow/bulk/resume", 200, json=ids)
        call("POST", "/workflow/bulk/terminate", 200, json=ids)
        for workflow_id in ids:
            until(workflow_id, "TERMINATED")

    def test_idempotency(self):
        flow = define(unique("flow"), [task("HUMAN", "h")])
        body = {"name": flow, "input": {}, "idempotencyKey": "k", "idempotencyStrategy": "FAIL"}
        first = call("POST", "/workflow", 200, json=body).text
        call("POST", "/workflow", 409, json=body)
        body["idempotencyStrategy"] = "RETURN_EXISTING"
        self.assertEqual(call("POST", "/workflow", 200, json=body).text, first)

    def test_definitions(self):
        flow = define(unique("flow"), [task("NOOP", "n")])
        call("POST", "/metadata/workflow", 409, json={"name": flow, "version": 1, "tasks": [task("NOOP", "n")]})
        body = [{"name": flow, "version": 2, "tasks": [task("NOOP", "n")]}]
        answer = call("PUT", "/metadata/workflow", 200, json=body).json()
        self.assertEqual(answer["bulkSuccessfulResults"], [flow])
        self.assertEqual(call("GET", f"/metadata/workflow/{flow}", 200).json()["version"], 2)
        self.assertEqual(call("GET", f"/metadata/workflow/{flow}?version=1", 200).json()["version"], 1)
        self.assertEqual(len(call("GET", "/metadata/workflow/names-and-versions", 200).json()[flow]), 2)
        call("DELETE", f"/metadata/workflow/{flow}/2", 200)
        call("DELETE", f"/metadata/workflow/{flow}/2", 404)
        twice = {"name": unique("bad"), "tasks": [task("NOOP", "n"), task("NOOP", "n")]}
        self.assertIn("unique", call("POST", "/metadata/workflow", 400, json=twice).text)


if __name__ == "__main__":
    unittest.main()
