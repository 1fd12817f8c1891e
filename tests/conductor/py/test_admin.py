"""What else there is: administration, queues of events, environment, health; and what there is not."""

import unittest

from windlass import (
    api, beside, call, define, message, refused, start, states, task, unique, until, until_task,
)


class Admin(unittest.TestCase):
    def test_workflows_are_looked_after(self):
        workflow_id = start(define(unique("flow"), [task("HUMAN", "h")]))
        before = until_task(workflow_id, "h")
        self.assertEqual(api("POST", f"/admin/sweep/requeue/{workflow_id}"), f"true.{workflow_id}")
        # State and queue are one: nothing is ever repaired.
        self.assertEqual(api("POST", f"/admin/consistency/verifyAndRepair/{workflow_id}"), False)
        self.assertEqual(states(until(workflow_id, "RUNNING")), states(before))
        gone = "No such workflow found by id: nobody"
        for path in ("/admin/sweep/requeue/nobody", "/admin/consistency/verifyAndRepair/nobody"):
            self.assertEqual(message(404, api, "POST", path), gone)
        self.assertEqual(api("GET", f"/admin/task/{unique('none')}"), [])
        refused(400, api, "GET", "/admin/task/x", start=-1)

    def test_what_it_is(self):
        version = api("GET", "/version")
        self.assertRegex(version, r"^\d+\.\d+\.\d+")
        self.assertEqual(api("GET", "/admin/config")["version"], version)
        self.assertEqual(api("GET", "/actuator/info", client=beside)["build"], {"name": "windlass", "version": version})
        docs = api("GET", "/api-docs", client=beside)
        self.assertEqual((docs["openapi"][:2], docs["info"]["version"]), ("3.", version))

    def test_it_is_well(self):
        healthy = {"healthy": True, "healthResults": [], "suppressedHealthResults": []}
        self.assertEqual(api("GET", "/health"), healthy)
        self.assertEqual(api("GET", "/actuator/health", client=beside), {"status": "UP"})

    def test_what_is_empty_here(self):
        for path in ("/admin/queues", "/queue", "/queue/", "/queue/size"):
            self.assertEqual(api("GET", path), {}, path)
        for path in ("/environment", "/secrets"):
            self.assertEqual(api("GET", path), [], path)
        self.assertEqual(api("GET", "/environment/HOME"), "")


class Nothing(unittest.TestCase):
    def test_paths_and_methods_that_are_not_there(self):
        self.assertEqual(message(404, api, "GET", "/nowhere/at/all"), "No static resource api/nowhere/at/all.")
        self.assertEqual(message(405, api, "PUT", "/workflow"), "Request method 'PUT' is not supported")
        self.assertEqual(message(405, api, "DELETE", "/tasks"), "Request method 'DELETE' is not supported")
        refused(404, api, "GET", "/actuator/beans", client=beside)
        # As clients of the vendor's own server ask, which has more than the open one.
        for method, path in [
            ("GET", "/users"), ("POST", "/token"), ("GET", "/applications"), ("GET", "/prompts"),
            ("GET", "/event/queue/config/sqs/q"), ("GET", "/metadata/tags"),
        ]:
            self.assertIn(refused_status(method, path), (404, 405), path)

    def test_bodies_that_cannot_be_read(self):
        self.assertIn("body is missing", call("POST", "/workflow", 500).json()["message"])
        self.assertIn("JSON parse error", message(500, api, "POST", "/workflow", [1]))
        refused_text = call("POST", "/workflow", 415, data="a=b", headers={"content-type": "text/html"}).json()
        self.assertIn("text/html", refused_text["message"])


def refused_status(method, path):
    return call(method, path, json={} if method == "POST" else None).status_code


if __name__ == "__main__":
    unittest.main()
