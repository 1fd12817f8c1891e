"""Searches for workflows and tasks. What they find is written a moment after it happened."""

import unittest

from windlass import (
    api, define, define_task, eventually, finish, message, poll, refused, sentences, start, task_api, unique, until,
    simple, workflow_api, workflows,
)

SEARCHES = ["/workflow/search", "/workflow/search-v2", "/workflow/search-by-tasks",
            "/workflow/search-by-tasks-v2", "/tasks/search", "/tasks/search-v2"]


class Searches(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.worker = define_task(unique("sought"), retryCount=0)
        cls.name = define(unique("Search"), [simple(cls.worker, ref="t")])
        cls.ids = {}
        for end in ("COMPLETED", "FAILED"):
            cls.ids[end] = start(cls.name, {"needle": end + "-in-hay"}, correlation_id=unique("c"), priority=3)
            finish(poll(cls.worker), end, {"said": end}, reason_for_incompletion="because")
            until(cls.ids[end], end)
        cls.ids["RUNNING"] = start(cls.name, {"needle": "none"})
        of_it = f"workflowType = '{cls.name}'"
        eventually(lambda: cls.found("/workflow/search", query=of_it)["totalHits"] == 3)
        eventually(lambda: cls.found("/tasks/search", query=f"taskType = '{cls.worker}'")["totalHits"] == 3)
        wanted = f"{of_it} AND status = 'FAILED'"
        eventually(lambda: cls.found("/workflow/search", query=wanted)["totalHits"] == 1)

    @staticmethod
    def found(path, **asked):
        return api("GET", path, **asked)

    def found_ids(self, path, **asked):
        return [one["workflowId"] for one in self.found(path, **asked)["results"]]

    def test_conditions(self):
        ids, of_it = self.ids, f"workflowType = '{self.name}'"
        ended = {ids["COMPLETED"], ids["FAILED"]}
        for query, wanted in [
            (of_it, set(ids.values())),
            (f"workflowType IN ({self.name},other)", set(ids.values())),
            (f"{of_it} AND status = \"COMPLETED\"", {ids["COMPLETED"]}),
            (f"{of_it} AND status IN (COMPLETED,FAILED)", ended),
            (f"workflowType = '*{self.name[1:].upper()}'", set(ids.values())),
            (f"workflowId = {ids['FAILED']}", {ids["FAILED"]}),
            (f"{of_it} AND startTime > 1", set(ids.values())),
            (f"{of_it} AND startTime < 1", set()),
            (f"{of_it} AND somethingElse = 7", set(ids.values())),
            (f"workflowType = {self.name}2", set()),
        ]:
            for path in ("/workflow/search", "/workflow/search-v2"):
                self.assertEqual(set(self.found_ids(path, query=query)), wanted, f"{path} {query}")

    def test_pages_and_order(self):
        asked = {"query": f"workflowType = '{self.name}'", "sort": "startTime:ASC"}
        in_order = list(self.ids.values())
        self.assertEqual(self.found_ids("/workflow/search", **asked), in_order)
        self.assertEqual(self.found_ids("/workflow/search", **asked, start=1, size=1), in_order[1:2])
        asked["sort"] = "startTime:DESC|workflowId:ASC"
        self.assertEqual(self.found_ids("/workflow/search-v2", **asked), in_order[::-1])
        self.assertEqual(self.found("/workflow/search", **asked, size=1)["totalHits"], 3)

    def test_free_text(self):
        asked = {"query": f"workflowType = '{self.name}'"}
        wanted = [self.ids["FAILED"]]
        eventually(lambda: self.found_ids("/workflow/search", freeText="FAILED-in-hay", **asked) == wanted)
        self.assertEqual(len(self.found_ids("/workflow/search", freeText="*", **asked)), 3)

    def test_a_summary_of_a_workflow(self):
        result = workflows.search(query=f"workflowType = '{self.name}' AND status = 'FAILED'")
        self.assertEqual(len(result.results), 1)
        one = result.results[0]
        self.assertEqual((one.workflow_id, one.workflow_type, one.version), (self.ids["FAILED"], self.name, 1))
        self.assertEqual((one.status, one.priority), ("FAILED", 3))
        self.assertEqual(one.failed_reference_task_names, "t")
        self.assertIn("because", one.reason_for_incompletion)
        self.assertRegex(one.start_time, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertIn("FAILED-in-hay", one.input)

    def test_whole_workflows(self):
        found = self.found("/workflow/search-v2", query=f"workflowId = {self.ids['COMPLETED']}")
        one = found["results"][0]
        self.assertEqual((one["status"], one["input"]), ("COMPLETED", {"needle": "COMPLETED-in-hay"}))
        self.assertEqual(one["output"], {"said": "COMPLETED"})

    def test_workflows_by_their_tasks(self):
        for path in ("/workflow/search-by-tasks", "/workflow/search-by-tasks-v2"):
            query = f"taskType = '{self.worker}' AND status = 'FAILED'"
            eventually(lambda: self.found_ids(path, query=query) == [self.ids["FAILED"]])

    def test_tasks(self):
        of_it = f"taskType = '{self.worker}'"
        eventually(lambda: task_api.search1(query=f"{of_it} AND status = 'COMPLETED'").total_hits == 1)
        one = task_api.search1(query=f"{of_it} AND status = 'COMPLETED'").results[0]
        self.assertEqual((one.workflow_id, one.task_def_name), (self.ids["COMPLETED"], self.worker))
        self.assertEqual((one.status, one.workflow_type), ("COMPLETED", self.name))
        whole = task_api.search_v21(query=f"{of_it} AND status = 'FAILED'").results[0]
        self.assertEqual((whole.workflow_instance_id, whole.output_data), (self.ids["FAILED"], {"said": "FAILED"}))
        self.assertEqual(task_api.search1(query=of_it, start=0, size=2, sort="startTime:ASC").total_hits, 3)

    def test_what_cannot_be_read(self):
        for path in SEARCHES:
            self.assertIn("nonsense", message(400, api, "GET", path, query="nonsense"))
            self.assertIn("start", message(400, api, "GET", path, start=-1))
            self.assertIn("many", message(500, api, "GET", path, size="many"))
            self.assertIn("Cannot return more than 5000", sentences(api, "GET", path, size=5001)[0])
        refused(400, workflow_api.search, query="nonsense")


if __name__ == "__main__":
    unittest.main()
