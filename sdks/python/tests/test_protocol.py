"""The protocol without a process."""

import contextlib
import io
import random
import unittest

from grapnel import Plugin, _codec, allow
from grapnel._protocol import RunningCall, Session

WORDS = ["id", "incarnation", "hello", "configure", "dispatch", "call_tool", "cancel", "ping", "drain", "host_reply", "unsupported"]
WORDS += ["hook", "tool", "guard", "echo", "remaining_ns", "arguments_json", "tool_pre_call", "context", "protocol_version", "x"]


def new() -> tuple[Session, list[dict]]:
    plugin = Plugin(name="p", version="1")

    @plugin.hook("guard", kinds=["decision"])
    def tool_pre_call(input, call):
        return allow(str(call.context.dir))

    plugin.tool("echo")(lambda arguments, call: arguments)
    lines: list[dict] = []
    return Session(plugin, lambda line: lines.append(_codec.decode(line))), lines


def tool(number, **more):
    return {"id": number, "incarnation": 3, "call_tool": {"tool": "echo", **more}}


class Protocol(unittest.TestCase):
    def test_course(self):
        session, lines = new()
        session.receive({"id": 1, "incarnation": 3, "hello": {"protocol_version": 1}})
        configure = session.receive({"id": 2, "incarnation": 3, "configure": {"instance": "i"}})
        configure.run()
        self.assertEqual([(f["id"], f["incarnation"]) for f in lines], [(1, 3), (2, 3)])
        self.assertEqual(lines[0]["describe"], lines[1]["configured"])
        call = session.receive(tool(5, arguments_json=None))
        call.run()
        self.assertEqual(lines[2], {"id": 5, "incarnation": 3, "tool_result": {}})

    def test_answers_come_before_the_pong_of_drain(self):
        session, lines = new()
        calls = [session.receive(tool(number)) for number in (5, 6)]
        session.receive({"id": 7, "drain": {}})
        session.receive({"id": 8, "drain": {}})
        session.receive({"id": 9, "ping": {}})
        for call in calls:
            call.run()
        session.receive({"id": 10, "drain": {}})
        self.assertEqual([f["id"] for f in lines], [9, 5, 6, 7, 8, 10])

    def test_cancelled_and_late_calls_do_not_begin(self):
        session, lines = new()
        call = session.receive(tool(5))
        session.receive({"id": 5, "cancel": {}})
        session.receive({"id": 99, "cancel": {}})
        call.run()
        late = session.receive(tool(6, remaining_ns=1))
        late.run()
        self.assertEqual([f["tool_result"]["error"].get("plugin_code") for f in lines], ["cancelled", None])
        self.assertEqual(lines[1]["tool_result"]["error"]["code"], "timeout")

    def test_oversize(self):
        session, lines = new()
        session.receive({"id": 1, "hello": {"protocol_version": 1, "max_frame_bytes": 100}})
        whole = len(_codec.encode({"id": 5, "incarnation": 3, "tool_result": {"content_json": ""}}))
        for length, fits in ((100 - whole, True), (101 - whole, False)):
            call = session.receive(tool(5, arguments_json="x" * length))
            call.run()
            self.assertEqual("error" not in lines[-1]["tool_result"], fits)

    def test_oversize_description(self):
        session, lines = new()
        session.receive({"id": 1, "incarnation": 3, "hello": {"protocol_version": 1, "max_frame_bytes": 10}})
        self.assertEqual(lines[0]["describe"]["error"]["code"], "oversize_reply")

    def test_any_frame(self):
        """Whatever the host sends: a frame is refused by ValueError, or each call is answered once."""
        for seed in range(3000):
            r = random.Random(seed)
            session, lines = new()
            frame = {r.choice(WORDS): value(r, 3) for _ in range(r.randrange(5))}
            before = dict(frame)
            with contextlib.redirect_stderr(io.StringIO()):
                try:
                    work = session.receive(frame)
                except ValueError:
                    continue
                if work is not None:
                    work.run()
            self.assertLessEqual(len(lines), 1, before)
            if isinstance(work, RunningCall) or "ping" in frame and len(frame) == 3 and isinstance(frame["ping"], dict):
                self.assertEqual(len(lines), 1, before)


def value(r, depth):
    if depth and r.random() < 0.6:
        return {r.choice(WORDS): value(r, depth - 1) for _ in range(r.randrange(4))}
    return r.choice([None, 0, 1, -1, 1 << 70, 1.5, "7", "guard", "echo", True, [], [1], "ä"])


if __name__ == "__main__":
    unittest.main()
