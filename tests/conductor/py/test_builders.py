"""Workflows as the Python SDK's builders write them: what they write is understood, and does what it says."""

import unittest

from conductor.client.http.models.start_workflow_request import StartWorkflowRequest
from conductor.client.workflow.conductor_workflow import ConductorWorkflow
from conductor.client.workflow.executor.workflow_executor import WorkflowExecutor
from conductor.client.workflow.task.do_while_task import LoopTask
from conductor.client.workflow.task.dynamic_fork_task import DynamicForkTask
from conductor.client.workflow.task.dynamic_task import DynamicTask
from conductor.client.workflow.task.event_task import ConductorEventTask
from conductor.client.workflow.task.fork_task import ForkTask
from conductor.client.workflow.task.http_task import HttpInput, HttpMethod, HttpTask
from conductor.client.workflow.task.human_task import HumanTask
from conductor.client.workflow.task.inline import InlineTask
from conductor.client.workflow.task.javascript_task import JavascriptTask
from conductor.client.workflow.task.join_task import JoinTask
from conductor.client.workflow.task.json_jq_task import JsonJQTask
from conductor.client.workflow.task.set_variable_task import SetVariableTask
from conductor.client.workflow.task.simple_task import SimpleTask
from conductor.client.workflow.task.start_workflow_task import StartWorkflowTask
from conductor.client.workflow.task.sub_workflow_task import InlineSubWorkflowTask, SubWorkflowTask
from conductor.client.workflow.task.switch_task import SwitchTask
from conductor.client.workflow.task.terminate_task import TerminateTask, WorkflowStatus
from conductor.client.workflow.task.timeout_policy import TimeoutPolicy
from conductor.client.workflow.task.wait_task import WaitForDurationTask, WaitUntilTask

from windlass import (
    api, beside, configuration, define_task, finish, metadata, newest, poll, shown, states, unique, until, until_task,
)

executor = WorkflowExecutor(configuration=configuration)


def inline(ref, script, given=None):
    return InlineTask(ref, script, given)


class Builders(unittest.TestCase):
    def flow(self, *tasks):
        flow = ConductorWorkflow(executor=executor, name=unique("built"), version=1)
        for task in tasks:
            flow.add(task)
        return flow

    def run_flow(self, flow, given=None):
        flow.register(overwrite=True)
        request = StartWorkflowRequest(name=flow.name, version=1, input=given or {})
        return executor.start_workflow(request)

    def test_a_definition_of_many_fields(self):
        flow = self.flow(SimpleTask(unique("s"), "s"))
        flow.timeout_policy(TimeoutPolicy.TIME_OUT_WORKFLOW).timeout_seconds(77).owner_email("o@example.org")
        flow.failure_workflow("mourn").variables({"v": 1}).input_template({"t": 2})
        flow.input_parameters(["a"]).output_parameters({"b": flow.input("a")})
        flow.register(overwrite=True)
        read = metadata.get_workflow_def(flow.name)
        self.assertEqual((read.timeout_policy, read.timeout_seconds, read.owner_email),
                         ("TIME_OUT_WF", 77, "o@example.org"))
        self.assertEqual(read.failure_workflow, "mourn")
        self.assertEqual((read.variables, read.input_template, read.input_parameters), ({"v": 1}, {"t": 2}, ["a"]))
        self.assertEqual(read.output_parameters, {"b": "${workflow.input.a}"})

    def test_scripts_variables_and_queries(self):
        double = JavascriptTask("double", "(function () { return $.n * 2; })()", {"n": "${workflow.input.n}"})
        jq = JsonJQTask("jq", "[.list[] | select(. > 1)]").input_parameter("list", [1, 2, 3])
        keep = SetVariableTask("keep").input_parameter("twice", double.output())
        flow = self.flow(double, keep, jq)
        flow.output_parameters({"twice": "${workflow.variables.twice}", "list": jq.output("result")})
        run = flow.execute({"n": 4}, wait_for_seconds=10)
        self.assertEqual((run.status, run.output), ("COMPLETED", {"twice": 8, "list": [2, 3]}))

    def test_cases_forks_and_loops(self):
        switch = SwitchTask("switch", "${workflow.input.way}")
        switch.switch_case("a", [inline("one", "1")]).default_case([inline("other", "2")])
        scripted = SwitchTask("scripted", "$.n > 1 ? 'many' : 'few'", use_javascript=True)
        scripted.input_parameter("n", "${workflow.input.n}").switch_case("many", [inline("many", "3")])
        fork = ForkTask("fork", [[inline("left", "4")], [inline("right", "5")]], join_on=["left", "right"])
        loop = LoopTask("loop", 3, [inline("round", "6")])
        workflow = until(self.run_flow(self.flow(switch, scripted, fork, loop), {"way": "a", "n": 5}), "COMPLETED")
        refs = [ref for ref, _ in states(workflow)]
        self.assertEqual([ref for ref in refs if ref in ("one", "other", "many")], ["one", "many"])
        self.assertEqual(newest(workflow, "fork_join")["outputData"],
                         {"left": {"result": 4}, "right": {"result": 5}})
        self.assertEqual(newest(workflow, "loop")["outputData"]["iteration"], 3)

    def test_forks_by_the_operator(self):
        flow = self.flow()
        flow >> [[inline("left", "1")], [inline("right", "2")]] >> inline("last", "3")
        workflow = until(self.run_flow(flow), "COMPLETED")
        self.assertEqual([t["taskType"] for t in workflow["tasks"]], ["FORK", "INLINE", "INLINE", "JOIN", "INLINE"])

    def test_what_is_known_only_when_it_runs(self):
        worker = define_task(unique("worker"))
        fork = DynamicForkTask("fork", "tasks", "inputs", JoinTask("join"))
        fork.input_parameter("tasks", "${workflow.input.tasks}").input_parameter("inputs", "${workflow.input.inputs}")
        flow = self.flow(DynamicTask("${workflow.input.worker}", "chosen"), fork)
        task = {"name": worker, "taskReferenceName": "each", "type": "SIMPLE"}
        workflow_id = self.run_flow(flow, {"worker": worker, "tasks": [task], "inputs": {"each": {"x": 1}}})
        finish(poll(worker))
        one = poll(worker)
        self.assertEqual((one["referenceTaskName"], one["inputData"]), ("each", {"x": 1}))
        finish(one, output={"y": 2})
        workflow = until(workflow_id, "COMPLETED")
        self.assertEqual(newest(workflow, "join")["outputData"], {"each": {"y": 2}})

    def test_workflows_in_workflows(self):
        below = self.flow(inline("i", "$.x + 1", {"x": "${workflow.input.x}"}))
        below.register(overwrite=True)
        named = SubWorkflowTask("named", below.name, 1).input_parameter("x", 1)
        written = InlineSubWorkflowTask("written", below).input_parameter("x", 2)
        apart = StartWorkflowTask("apart", below.name, StartWorkflowRequest(input={"x": 3}), 1)
        workflow = until(self.run_flow(self.flow(named, written, apart)), "COMPLETED")
        self.assertEqual(newest(workflow, "named")["outputData"]["result"], 2)
        self.assertEqual(newest(workflow, "written")["outputData"]["result"], 3)
        started = newest(workflow, "apart")["outputData"]["workflowId"]
        self.assertEqual(until(started, "COMPLETED")["output"], {"result": 4})

    def test_waits_events_requests_and_the_end(self):
        health = HttpInput(method=HttpMethod.GET, uri=f"{beside.configuration.host}/api/health")
        http = HttpTask("http", health)
        flow = self.flow(
            WaitUntilTask("past", "2020-01-01 00:00 GMT"), WaitForDurationTask("second", 1),
            ConductorEventTask("event", "e"), http, HumanTask("human", display_name="d"),
            TerminateTask("end", WorkflowStatus.FAILED, "as it was said"), SimpleTask(unique("never"), "never"),
        )
        workflow_id = self.run_flow(flow)
        workflow = until_task(workflow_id, "human")
        self.assertEqual(newest(workflow, "http")["outputData"]["response"]["body"]["healthy"], True)
        self.assertEqual(newest(workflow, "event")["outputData"]["event_produced"], f"conductor:{flow.name}:e")
        given = newest(workflow, "human")["inputData"]["__humanTaskDefinition"]
        self.assertEqual(given["displayName"], "d")
        api("POST", f"/tasks/{workflow_id}/human/COMPLETED", {"by": "hand"})
        workflow = until(workflow_id, "FAILED")
        self.assertEqual(workflow["reasonForIncompletion"], "as it was said")
        self.assertNotIn("never", dict(states(workflow)))

    def test_a_workflow_that_nobody_registered(self):
        flow = self.flow(inline("i", "7"))
        workflow = until(flow.start_workflow_with_input({"x": 1}, correlation_id="c", priority=3), "COMPLETED")
        self.assertEqual((workflow["output"], workflow["correlationId"], workflow["priority"]),
                         ({"result": 7}, "c", 3))
        run = flow(x=2)
        self.assertEqual((run.status, shown(run.workflow_id)["input"]["x"]), ("COMPLETED", 2))


if __name__ == "__main__":
    unittest.main()
