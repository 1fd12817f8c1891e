"""One source through PyAirbyte into its default cache: `read.py NAME PROGRAM CONFIG STREAM`, figures on standard output."""

import json
import pathlib
import sys
import time
from importlib import metadata

import airbyte

name, program, config, stream = sys.argv[1:]
source = airbyte.get_source(
    name,
    config=json.loads(pathlib.Path(config).read_text()),
    local_executable=pathlib.Path(program),
    streams=[stream],
)
started = time.monotonic()
result = source.read(force_full_refresh=True)
took = time.monotonic() - started
print(json.dumps({"records": len(result[stream]), "read_s": took, "version": metadata.version("airbyte")}))
