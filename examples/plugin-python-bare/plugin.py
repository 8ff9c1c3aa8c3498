"""A Grapnel plugin without any library: it denies the tool "shell". Declare it with `transport: stdio`."""

import json
import os
import sys

HOOK = {"name": "guard", "phase": "tool.pre_call", "kinds": ["decision"], "role": "validate", "needs": ["nothing"]}
DESCRIPTION = {"name": "noshell", "version": "1.0.0", "doc": "Denies the tool shell.", "hooks": [HOOK]}

if os.environ.get("GRAPNEL_PLUGIN") != "2f6a0c1e9d4b4b7c8f0e5a73d1c96b28":
    sys.exit("This is a Grapnel plugin. Declare it in grapnel.yaml, with `transport: stdio`.")

out, sys.stdout = sys.stdout.buffer, sys.stderr  # print() must not break the protocol


def send(frame, name, body):
    answer = {"id": frame["id"], "incarnation": frame.get("incarnation", 0), name: body}
    out.write(json.dumps(answer).encode() + b"\n")
    out.flush()


def decide(dispatch):
    if dispatch.get("tool_pre_call", {}).get("tool") != "shell":
        return {}  # no opinion
    return {"contributions": [{"decision": {"verdict": "deny", "reason": "no shell here"}}]}


for line in sys.stdin.buffer:  # its end is the end of the session
    frame = json.loads(line)
    body = next((name for name, value in frame.items() if name not in ("id", "incarnation") and value is not None), "")
    if body == "hello":
        send(frame, "describe", {"description": DESCRIPTION})
    elif body == "configure":
        send(frame, "configured", {"description": DESCRIPTION})
    elif body == "dispatch":
        send(frame, "result", decide(frame["dispatch"]))
    elif body in ("ping", "drain"):  # nothing is ever left to answer
        send(frame, "pong", {})
    elif body not in ("cancel", "host_reply", "unsupported"):
        send(frame, "unsupported", {"name": body})
