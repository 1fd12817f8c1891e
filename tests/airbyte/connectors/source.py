"""A source that behaves as its configuration says, badly where it is told to. The standard library only, so
that it starts in milliseconds.

{"mode": "...", "count": 10, "state_every": 5, "pad": 0, "pause_s": 0, ...}; see `MODES`.
"""

import json
import os
import signal
import sys
import time

OUT = sys.stdout


def say(message):
    OUT.write(json.dumps(message, separators=(",", ":")) + "\n")


def record(stream, data, **more):
    say({"type": "RECORD", "record": {"stream": stream, "data": data, "emitted_at": 1700000000000, **more}})


def state(stream, value, **more):
    descriptor = {"name": stream}
    say({"type": "STATE", "state": {"type": "STREAM", "stream": {"stream_descriptor": descriptor, "stream_state": value}, **more}})


def trace(kind, **fields):
    say({"type": "TRACE", "trace": {"type": kind, "emitted_at": 1700000000000.25, **fields}})


def status(stream, what):
    trace("STREAM_STATUS", stream_status={"stream_descriptor": {"name": stream}, "status": what})


def names(catalog):
    return [entry["stream"]["name"] for entry in catalog["streams"]]


def plain(config, catalog, cursors):
    """Records with an id that counts up, a state behind every few: goes on where a state says."""
    every, pad = config.get("state_every", 5), "x" * config.get("pad", 0)
    for stream in names(catalog):
        status(stream, "STARTED")
        begin = cursors.get(stream, {}).get("cursor", 0)
        for number in range(begin, config.get("count", 10)):
            record(stream, {"id": number, "text": pad})
            if (number + 1) % every == 0:
                state(stream, {"cursor": number + 1})
                OUT.flush()
                if config.get("pause_s"):
                    time.sleep(config["pause_s"])
        status(stream, "COMPLETE")


def bad_json(config, catalog, cursors):
    stream = names(catalog)[0]
    print("hello, I am no JSON")
    print('{"type": "RECORD", "record": {"stream": "%s", "data": {' % stream)
    print('{"type":"RECORD","record":{"stream":"a","data":{"x":"y{"type":"RECORD","record":{"stream":"a","data":{"x":1},"emitted_at":1}}')
    print("[1, 2, 3]")
    print("")
    say({"type": "NEW_KIND", "new": {}})
    say({"type": "STREAM", "stream": {}})
    say({"type": "STATE", "state": {"type": "STREAM"}})
    OUT.flush()
    sys.stdout.buffer.write(b"\xff\xfe\x00 bytes\n")
    sys.stdout.buffer.flush()
    plain(config, catalog, cursors)
    OUT.write('{"type":"RECORD","record":{"stream":"a","da')


def spellings(config, catalog, cursors):
    """What kits of several ages write."""
    stream = names(catalog)[0]
    print('{"type": "RECORD", "log": null, "record": {"namespace": null, "stream": "%s", "data": {"id": 1}, "emitted_at": 1, "meta": null}}' % stream)
    print('{"record":{"emitted_at":1,"data":{"id":2},"new":{"a":[1]},"stream":"%s"},"type":"RECORD","later":true}' % stream)
    print('  {"type":"RECORD","record":{"stream":"%s","data":{"id":3},"emitted_at":1,"namespace":""}}  \r' % stream)
    print('{"type":"RECORD","record":{"stream":"%s","data":{},"emitted_at":1}}' % stream)
    print('{"type":"RECORD","record":{"stream":"%s","data":null,"emitted_at":1}}' % stream)
    print('{"type": "STATE", "state": {"type": "STREAM", "stream": {"stream_descriptor": {"name": "%s", "namespace": null}, "stream_state": {"at": 1.50, "new": null}}, "new": [1], "sourceStats": {"recordCount": 5.0}}}' % stream)


def unknown_stream(config, catalog, cursors):
    plain(config, catalog, cursors)
    record("nobody_asked", {"id": 1})


def unknown_complete(config, catalog, cursors):
    status("nobody_asked", "COMPLETE")


def incomplete(config, catalog, cursors):
    plain(config, catalog, cursors)
    status(names(catalog)[0], "INCOMPLETE")
    if config.get("again"):
        status(names(catalog)[0], "COMPLETE")


def long_line(config, catalog, cursors):
    stream = names(catalog)[0]
    record(stream, {"id": 0, "text": "x" * config["bytes"]})
    state(stream, {"cursor": 1})


def hang(config, catalog, cursors):
    plain(config, catalog, cursors)
    OUT.flush()
    time.sleep(3600)


def hang_closed(config, catalog, cursors):
    plain(config, catalog, cursors)
    OUT.flush()
    os.close(1)
    time.sleep(3600)


def stubborn(config, catalog, cursors):
    """Does not end when it is asked to."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hang(config, catalog, cursors)


def fork_and_leave(config, catalog, cursors):
    """A child in a session of its own keeps the output open for ever."""
    plain(config, catalog, cursors)
    OUT.flush()
    if os.fork() == 0:
        os.setsid()
        if config.get("scrub"):
            os.execve("/bin/sleep", ["sleep", str(config.get("sleep_s", 3600))], {})
        os.execv("/bin/sleep", ["sleep", "3600"])


def exit_with(config, catalog, cursors):
    plain(config, catalog, cursors)
    OUT.flush()
    print("the last words", file=sys.stderr)
    os._exit(config["code"])


def kill_self(config, catalog, cursors):
    plain(config, catalog, cursors)
    OUT.flush()
    os.kill(os.getpid(), config["signal"])


def eat_memory(config, catalog, cursors):
    eaten = []
    while True:
        eaten.append(bytearray(1 << 22))


def error_trace(config, catalog, cursors):
    plain(config, catalog, cursors)
    pad = "x" * config.get("error_pad", 0)
    for failure in config["failures"]:
        trace("ERROR", error={"message": "it is " + str(failure) + pad, "internal_message": "inside" + pad, "stack_trace": "at 1" + pad, "failure_type": failure})
    OUT.flush()
    os._exit(config.get("code", 1))


def out_of_order(config, catalog, cursors):
    """States whose cursors go back and forth; two that are the same."""
    stream = names(catalog)[0]
    for number, cursor in enumerate([3, 1, 2, 2]):
        record(stream, {"id": number})
        state(stream, {"cursor": cursor})


def no_state(config, catalog, cursors):
    for stream in names(catalog):
        for number in range(config.get("count", 10)):
            record(stream, {"id": number})


def mixed_states(config, catalog, cursors):
    stream = names(catalog)[0]
    record(stream, {"id": 0})
    state(stream, {"cursor": 1})
    say({"type": "STATE", "state": {"type": "GLOBAL", "global": {"shared_state": {}, "stream_states": []}}})


def global_states(config, catalog, cursors):
    streams = names(catalog)
    for number in range(config.get("count", 10)):
        for stream in streams:
            record(stream, {"id": number})
        each = [{"stream_descriptor": {"name": stream}, "stream_state": {"n": number}} for stream in streams]
        say({"type": "STATE", "state": {"type": "GLOBAL", "global": {"shared_state": {"n": number}, "stream_states": each}}})


def legacy_states(config, catalog, cursors):
    stream = names(catalog)[0]
    record(stream, {"id": 0})
    say({"type": "STATE", "state": {"data": {"n": 1}}})


def close_early(config, catalog, cursors):
    plain(config, catalog, cursors)
    OUT.flush()
    os.close(1)
    os._exit(0)


def rotate(config):
    new = {**config, "token": "rotated", "padding": "x" * config.get("control_pad", 0)}
    say({"type": "CONTROL", "control": {"type": "CONNECTOR_CONFIG", "emitted_at": 1.5, "connectorConfig": {"config": new}}})


def control(config, catalog, cursors):
    rotate(config)
    say({"type": "LOG", "log": {"level": "WARN", "message": "the new token is rotated"}})
    plain(config, catalog, cursors)


def without_key(config, catalog, cursors):
    stream = names(catalog)[0]
    record(stream, {"id": 1})
    record(stream, {"id": None})


def wrong_types(config, catalog, cursors):
    stream = names(catalog)[0]
    for number in range(20):
        record(stream, {"id": "a text", "text": 5})


def estimates(config, catalog, cursors):
    for stream in names(catalog):
        trace("ESTIMATE", estimate={"name": stream, "type": "STREAM", "row_estimate": 10, "byte_estimate": 1000})
    plain(config, catalog, cursors)


def environment(config, catalog, cursors):
    """What it sees of the world, as records."""
    stream = names(catalog)[0]
    record(stream, {"environment": sorted(os.environ), "session": os.getsid(0) == os.getpid()})


def flood_stderr(config, catalog, cursors):
    for _ in range(200):
        print("e" * 100_000, file=sys.stderr, end="")
    print(file=sys.stderr)
    plain(config, catalog, cursors)


MODES = {
    mode.__name__: mode
    for mode in [
        plain, bad_json, spellings, unknown_stream, unknown_complete, incomplete, long_line, hang, hang_closed, stubborn,
        fork_and_leave, exit_with, kill_self, eat_memory, error_trace, out_of_order, no_state, mixed_states,
        global_states, legacy_states, close_early, control, without_key, wrong_types, estimates, environment,
        flood_stderr,
    ]
}


def check(config):
    how = config.get("check", "ok")
    if how == "hang":
        time.sleep(3600)
    if how == "babble":
        while True:
            print("and on and on")
    if how == "silent":
        return 0
    if how == "crash":
        print("Traceback: it crashed", file=sys.stderr)
        return 1
    failed = how.startswith("failed")
    say({"type": "CONNECTION_STATUS", "connectionStatus": {"status": "FAILED" if failed else "SUCCEEDED", "message": "the password is wrong" if failed else None}})
    return 1 if how == "failed_1" else 0


def discover(config):
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "text": {"type": "string"}}}
    schema["description"] = "x" * config.get("schema_pad", 0)
    modes = ["full_refresh", "incremental"]
    streams = [
        {"name": name, "json_schema": schema, "supported_sync_modes": modes, "source_defined_primary_key": [["id"]], "source_defined_cursor": True, "is_resumable": True}
        for name in config.get("streams", ["a"])
    ]
    if config.get("rotates"):
        rotate(config)
    say({"type": "CATALOG", "catalog": {"streams": streams}})
    return 0


def main():
    command, options = sys.argv[1], sys.argv[2:]
    paths = dict(zip(options[::2], options[1::2]))
    if command == "spec":
        say({"type": "SPEC", "spec": {"connectionSpecification": {"type": "object", "properties": {}}}})
        return 0
    config = json.load(open(paths["--config"]))
    if command == "check":
        return check(config)
    if command == "discover":
        return discover(config)
    if config.get("rotates") and config.get("token") != "rotated":
        return 1
    catalog = json.load(open(paths["--catalog"]))
    states = json.load(open(paths["--state"])) if "--state" in paths else []
    cursors = {}
    for one in states:
        if "stream" in one:
            cursors[one["stream"]["stream_descriptor"]["name"]] = one["stream"]["stream_state"] or {}
    MODES[config.get("mode", "plain")](config, catalog, cursors)
    OUT.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
