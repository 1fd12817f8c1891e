"""Writes down what the SDK asked for and was given, and which tasks ended how: `complete.py` reads it.

The file is named by WINDLASS_CALLS; without it nothing is written. A line is `METHOD path` of a request
that was answered with success, `TASK type status` of a task that was seen, `TIME timeout policy` or
`RETRY logic` of a definition.
"""

import os
from urllib.parse import urlsplit

from conductor.client.http.rest import RESTClientObject

FILE = os.environ.get("WINDLASS_CALLS")


def note(line):
    """One line, whole even when workers in other processes write too."""
    if FILE:
        with open(FILE, "ab", buffering=0) as file:
            file.write(f"{line}\n".encode())


def _noted(request):
    def wrapped(self, method, url, *args, **kwargs):
        # What is refused raises: only what succeeds comes by here.
        answer = request(self, method, url, *args, **kwargs)
        note(f"{method.upper()} {urlsplit(url).path}")
        return answer

    return wrapped


RESTClientObject.request = _noted(RESTClientObject.request)
