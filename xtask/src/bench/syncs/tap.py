"""`tap-airbyte` as PyPI has it, with the source's own program in the place of the container's `/airbyte/base.sh`.

That release knows no states of streams and ends at the first, so they are taken out on the way.
"""

import os
import subprocess
import types

from tap_airbyte import tap

SOURCE = os.environ["BENCH_SOURCE"]


def words(command):
    if command[0] not in ("/airbyte/base.sh", "./base.sh"):
        return command
    return ["sh", "-c", '"$0" "$@" | grep -v \'"type":"STATE"\'', SOURCE, *command[1:]]


def with_source(start):
    def started(command, **more):
        if more.get("cwd") == "/airbyte":
            del more["cwd"]
        return start(words(command), **more)

    return started


tap.subprocess = types.SimpleNamespace(
    run=with_source(subprocess.run), Popen=with_source(subprocess.Popen), PIPE=subprocess.PIPE
)
# Its files for the source; the folder of the run, so that two runs do not meet in /tmp.
tap.TapAirbyte.conf_dir = os.getcwd()

if __name__ == "__main__":
    tap.TapAirbyte.cli()
