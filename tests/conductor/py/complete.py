"""Fails when the suite has left something out: an endpoint that the server routes, a type of task, a timeout
with one of its policies, a logic of retries.

The endpoints are read where they are routed; what was called, by a real SDK and with success, is read from
the file that `calls.py` and `js/sdk.mjs` wrote. Run it when every scenario has run.
"""

import os
import pathlib
import re
import sys

ROUTED = pathlib.Path(__file__).resolve().parents[3] / "crates/api-conductor/src"
# The prefix of all routes but those of `pages`.
PREFIX = "/api"
ROUTE = re.compile(r'\.route\(\s*"([^"]+)",\s*((?:\.?(?:get|post|put|delete)\(\w+\))+)')
METHOD = re.compile(r"(get|post|put|delete)\(")
# Fewer were not read right.
ENDPOINTS_MIN = 110

TYPES = (
    "SIMPLE DYNAMIC SWITCH DECISION FORK_JOIN FORK_JOIN_DYNAMIC JOIN EXCLUSIVE_JOIN DO_WHILE SUB_WORKFLOW"
    " START_WORKFLOW TERMINATE SET_VARIABLE WAIT HUMAN HTTP INLINE LAMBDA JSON_JQ_TRANSFORM EVENT NOOP"
).split()
# How tasks end; a retry, a skip and a cancellation are among them.
STATUSES = (
    "COMPLETED COMPLETED_WITH_ERRORS FAILED FAILED_WITH_TERMINAL_ERROR TIMED_OUT CANCELED SKIPPED"
).split()
TIMES = [
    f"{timeout} {policy}"
    for timeout in ("timeoutSeconds", "totalTimeoutSeconds", "responseTimeoutSeconds", "pollTimeoutSeconds")
    for policy in ("RETRY", "TIME_OUT_WF", "ALERT_ONLY")
] + ["workflow TIME_OUT_WF", "workflow ALERT_ONLY"]
LOGICS = ["FIXED", "LINEAR_BACKOFF", "EXPONENTIAL_BACKOFF"]


def endpoints():
    """All (method, path) that the server routes."""
    found = set()
    for file in sorted(ROUTED.glob("*.rs")):
        # Pages stand beside the prefix, in a function of their own.
        under, _, pages = file.read_text().partition("fn pages(")
        for text, prefix in ((under, PREFIX), (pages, "")):
            for path, methods in ROUTE.findall(text):
                found |= {(method.upper(), prefix + path) for method in METHOD.findall(methods)}
    return found


def fits(path, segments):
    """How well a route fits a path: None if it does not, else which of its segments are literal."""
    wanted = path.split("/")
    if len(wanted) != len(segments):
        return None
    literal = [not want.startswith("{") for want in wanted]
    if all(want == got or not exact for want, got, exact in zip(wanted, segments, literal)):
        return literal
    return None


def called_among(routed, lines):
    """The endpoints that lines of requests belong to."""
    paths = sorted({path for _, path in routed})
    called = set()
    for method, path in set(map(tuple, map(str.split, lines))):
        segments = path.split("/")
        matching = [(fit, route) for route in paths if (fit := fits(route, segments)) is not None]
        if matching:
            # As the router does: what is written out comes before what is open.
            called.add((method, max(matching)[1]))
    return called


def main():
    routed = endpoints()
    assert len(routed) >= ENDPOINTS_MIN, f"only {len(routed)} endpoints were found in {ROUTED}"
    noted = {"TASK": set(), "TIME": set(), "RETRY": set()}
    requests = set()
    for line in pathlib.Path(os.environ["WINDLASS_CALLS"]).read_text().splitlines():
        kind, _, rest = line.partition(" ")
        if kind in noted:
            noted[kind].add(rest)
        else:
            requests.add(line)
    called = called_among(routed, requests)
    statuses = {task.split()[1] for task in noted["TASK"]}
    problems = [f"no scenario calls {method} {path}" for method, path in sorted(routed - called)]
    problems += [f"no scenario completes a {kind}" for kind in TYPES if f"{kind} COMPLETED" not in noted["TASK"]]
    problems += [f"in no scenario a task becomes {status}" for status in STATUSES if status not in statuses]
    problems += [f"no scenario has the timeout {time}" for time in TIMES if time not in noted["TIME"]]
    problems += [f"no scenario retries by {logic}" for logic in LOGICS if logic not in noted["RETRY"]]
    print(f"{len(routed)} endpoints, {len(TYPES)} types of task, {len(TIMES)} timeouts: {len(problems)} left out")
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
