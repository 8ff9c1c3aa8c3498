"""The process: a spawned program against a fake host."""

import json
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from grapnel._serve import THREADS
from grapnel._stdio import COOKIE
from grapnel.testing import Host, Process

PROGRAM = [sys.executable, str(Path(__file__).with_name("everything.py"))]


def start(**options):
    return Process(PROGRAM, **options)


def error_of(frame):
    return (frame.get("result") or frame.get("tool_result"))["error"]


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        services = {"state/put": {}, "state/get": {"value": 7}, "model/complete": {"text": "hi", "model": "m", "stopped": "end"}}
        cls.host = Host(services)
        cls.process = start(host=cls.host).__enter__()
        cls.addClassCleanup(cls.process.__exit__)

    def call(self, **case):
        return self.process.call(**case)

    def test_hook(self):
        answer = self.call(hook="guard", input={"tool": "shell"})
        self.assertEqual(answer.json, {"contributions": [{"kind": "decision", "verdict": "deny", "reason": "no shell here", "reason_code": "shell"}]})
        self.assertEqual(self.call(hook="guard", input={"tool": "read"}).json, {})
        self.assertEqual([c.verdict for c in self.call(hook="many").contributions], ["allow", "deny"])

    def test_facts(self):
        for facts, denied in (
            ({}, False),
            ({"secrets": ["/a/.env"]}, True),
            ({"commands": [{"program": "ls", "words": ["ls"]}, {"program": "rm", "options": ["-r"]}]}, True),
            ({"unparsed": True, "why": "eval"}, True),
        ):
            with self.subTest(facts):
                self.assertEqual(len(self.call(hook="facts", input={"tool": "shell", "facts": facts}).contributions), denied)
        self.assertEqual(self.call(hook="facts", input={"tool": "shell"}).json, {})

    def test_tool(self):
        for value in ("text", {"a": [1, 2.5, None, True, "ä\u2028"]}, [], 0, False):
            self.assertEqual(self.call(tool="echo", input=value).content, value)
        self.assertTrue(self.call(tool="reports").is_error)
        got = self.call(tool="sees", outside_turn=True, context={"dir": "/d"}).content
        self.assertEqual(got, {"dir": "/d", "policy": None, "outside": True, "config": {}})

    def test_invalid_answers(self):
        for case, want in {
            ("hook", "wrong_kind"): "add it to its kinds",
            ("hook", "not_one"): "answered with a str",
            ("hook", "wrong_type"): "Decision.reason: want str, got int",
            ("hook", "endless"): "more than 256",
            ("tool", "items"): "KeyError: 'no items'",
            ("tool", "surrogate"): "U+D800",
            ("tool", "reordering"): "U+202E",
            ("tool", "nul"): "NUL",
            ("tool", "not_a_number"): "float",
            ("tool", "huge"): "4300 digits",
            ("tool", "a_set"): "set is not JSON",
            ("tool", "loop"): "nested too deep",
        }.items():
            with self.subTest(case[1]):
                answer = self.process.ask(self.process.body(**{case[0]: case[1]}))
                self.assertEqual(error_of(answer)["code"], "plugin_error")
                self.assertIn(want, error_of(answer)["message"])

    def test_raised(self):
        for what, name in {"exit": "SystemExit", "interrupt": "KeyboardInterrupt", "base": "BaseException", "value": "ValueError", "stop": "StopIteration"}.items():
            with self.subTest(what):
                self.assertEqual(self.call(tool="raises", input=what).error, {"code": "error", "message": f"{name}: x?"})
        self.assertEqual(self.call(tool="async_raises").error, {"code": "error", "message": "SystemExit: 1"})
        self.assertEqual(self.call(tool="own_error").error, {"code": "upstream_down", "message": "no answer", "retryable": True})
        self.assertEqual(self.call(tool="rude", input="rude").error, {"code": "error", "message": "Rude"})
        self.assertEqual(self.call(tool="rude", input="worse").error, {"code": "error", "message": "Worse"})
        self.assertEqual(self.call(tool="rude").error, {"code": "5", "message": "5", "retryable": True})
        self.assertLess(len(self.call(tool="huge_message").error["message"]), 5000)
        self.assertIn("Traceback", self.process.stderr)

    def test_oversize(self):
        frame = self.process.ask(self.process.body(tool="oversize"))
        self.assertEqual(error_of(frame)["code"], "oversize_reply")
        # Bytes count, not characters: the largest answer that fits, and one byte more.
        frame = self.process.frame({"tool_result": {"content_json": ""}})
        room = (4 << 20) - len(f'{{"id":{frame["id"] + 0},"incarnation":1,"tool_result":{{"content_json":""}}}}')
        self.process._last -= 1
        answer = self.call(tool="fits", input=room // 2)
        self.assertEqual(len(answer.content), room // 2)
        self.assertEqual(self.call(tool="fits", input=room // 2 + 1).error["code"], "oversize_reply")

    def test_huge_input(self):
        body = {"call_tool": {"tool": "echo", "arguments_json": [0]}}
        frame = self.process.frame(body)
        self.process.send(str(frame).replace("'", '"').replace("[0]", "[" + "1" * 5000 + "]").encode())
        self.assertIn("float", error_of(self.process.wait(frame["id"]))["message"])

    def test_descriptors(self):
        self.assertEqual(self.call(tool="prints").content, "")
        for word in ("at import", "printed", "written", "child"):
            self.assertIn(word, self.process.stderr)
        self.assertEqual(self.call(tool="asks_person").error["message"].partition(":")[0], "EOFError")

    def test_host(self):
        self.assertEqual(self.call(tool="state", input={"n": 1}).content, [7, "hi"])
        names = [(name, params) for name, params in self.host.calls if name.startswith(("state/p", "model"))]
        self.assertEqual(names, [("state/put", {"value": {"n": 1}}), ("model/complete", {"input": "hello", "max_output_tokens": 5})])
        self.assertEqual(self.host.invalidated[-1]["tags"], ["t"])
        self.assertEqual(self.call(tool="async_state").content, 7)
        self.assertEqual(self.call(tool="forbidden").error["code"], "forbidden")

    def test_unknown(self):
        self.assertEqual(self.process.ask({"dance": {}})["unsupported"], {"name": "dance"})
        self.assertEqual(self.process.ask({})["unsupported"], {})
        self.assertEqual(self.process.ask({"ping": None})["unsupported"], {})
        self.assertIn("pong", self.process.ask({"later": None, "ping": {"x": 1}}))
        frame = self.process.ask({"dispatch": {"hook": "nobody"}})
        self.assertEqual(error_of(frame)["plugin_code"], "unknown_hook")

    def test_decimal_strings(self):
        frame = self.process.frame({"ping": {}})
        self.process.send({**frame, "id": str(frame["id"]), "incarnation": "9007199254740993"})
        self.assertEqual(self.process.wait(frame["id"])["incarnation"], 9007199254740993)


class Time(unittest.TestCase):
    def test_deadline(self):
        with start() as p:
            self.assertEqual(p.call(tool="waits", timeout=0.05).content, ["cancelled", "timeout"])
            answer = p.ask(p.body(tool="async_waits", timeout=0.05))
            self.assertEqual(error_of(answer)["code"], "timeout")

    def test_cancel(self):
        with start() as p:
            for tool in ("waits", "async_waits", "async_stubborn", "deaf"):
                with self.subTest(tool):
                    p.host.services["never/answers"] = lambda _: time.sleep(0.2)
                    number = p.begin(p.body(tool=tool))
                    p.ping()
                    p.cancel(number)
                    answer = p.wait(number)["tool_result"]
                    if "error" in answer:
                        self.assertIn("cancelled", answer["error"]["message"])
                    p.cancel(number)  # nobody's any more
                    p.ping()
                    self.assertTrue(p._queue(number).empty(), "a second answer")

    def test_cancel_in_one_write(self):
        with start() as p:
            for tool in ("waits", "async_waits") * 20:
                frame = p.frame(p.body(tool=tool))
                cancel, ping = p.frame({"cancel": {}}, frame["id"]), p.frame({"ping": {}})
                p.send(b"\n".join(json.dumps(f).encode() for f in (frame, cancel, ping)))
                p.wait(ping["id"])
                p.wait(frame["id"])
                self.assertTrue(p._queue(frame["id"]).empty(), "a second answer")

    def test_ping_while_all_threads_work(self):
        with start() as p:
            numbers = [p.begin(p.body(tool="waits")) for _ in range(3 * THREADS)]
            p.ping()
            p.cancel(numbers[-1])  # still in the queue
            for number in numbers[:THREADS]:
                p.cancel(number)
            for number in numbers[THREADS:]:
                p.cancel(number)
            for number in numbers:
                self.assertIn("tool_result", p.wait(number))
            self.assertEqual(p.call(tool="echo", input=1).content, 1)

    def test_handler_that_blocks_the_reader(self):
        with start() as p:
            number = p.begin(p.body(tool="sleeps", input=0.5))
            begin = time.monotonic()
            p.ping()
            self.assertLess(time.monotonic() - begin, 0.4)
            self.assertEqual(p.wait(number)["tool_result"]["content_json"], "slept")

    def test_many(self):
        with start() as p:
            numbers = {p.begin(p.body(tool=("echo", "sleeps", "async_quick")[i % 3], input=0.001)): i for i in range(600)}
            for number in numbers:
                self.assertNotIn("error", p.wait(number)["tool_result"])


class End(unittest.TestCase):
    def test_drain(self):
        with start() as p:
            call = p.begin(p.body(tool="sleeps", input=0.1))
            first, second = p.begin({"drain": {}}), p.begin({"drain": {}})
            p.wait(first)
            p.wait(second)
            self.assertFalse(p._queue(call).empty(), "the pong came before the answer")
            p.drain()
            self.assertEqual(p.call(tool="echo", input="late").content, "late")

    def test_end_of_file(self):
        with start() as p:
            p.begin(p.body(tool="waits"))
            p.begin(p.body(tool="async_waits"))
            p.begin(p.body(tool="deaf"))
            p.begin(p.body(tool="sleeps", input=10))
            begin = time.monotonic()
            self.assertEqual(p.close(), 0)
            self.assertLess(time.monotonic() - begin, 2)
            self.assertIn("closed", p.stderr)
            self.assertNotIn("Traceback", p.stderr)

    def test_end_of_file_at_once(self):
        env = {**os.environ, "GRAPNEL_PLUGIN": COOKIE, "GRAPNEL_TRANSPORT": "stdio"}
        done = subprocess.run(PROGRAM, input=b"", env=env, capture_output=True, timeout=10)
        self.assertEqual((done.returncode, done.stdout), (0, b""))
        self.assertEqual(done.stderr, b"at import\nclosed\n")

    def test_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with start() as p:
                p.begin(p.body(tool="sleeps", input=10))
                p.ping()
                os.kill(p.pid, number)
                if number == signal.SIGINT:
                    p.ping()  # is for the host to act upon
                else:
                    self.assertEqual(p._child.wait(2), 0)
                self.assertEqual(p.close(), 0)
                self.assertNotIn("Traceback", p.stderr)

    def test_broken_pipe(self):
        env = {**os.environ, "GRAPNEL_PLUGIN": COOKIE, "GRAPNEL_TRANSPORT": "stdio"}
        child = subprocess.Popen(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        child.stdout.close()
        _, log = child.communicate(b'{"id":1,"hello":{"protocol_version":1}}\n' * 3, timeout=10)
        self.assertEqual((child.returncode, log.count(b"Traceback")), (0, 0))

    def test_line_that_is_not_a_frame(self):
        for line in (b"hello", b"[]", b"\xff", b'{"id":{"a":1}}', b"[" * 100_000):
            with start() as p:
                p.send(line)
                self.assertEqual(p.close(), 1)
                self.assertIn("not a frame", p.stderr)
                self.assertNotIn("Traceback", p.stderr)

    def test_started_by_a_person(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("GRAPNEL_")}
        done = subprocess.run(PROGRAM, env=env, capture_output=True, text=True, timeout=10)
        self.assertEqual(done.returncode, 1)
        self.assertIn("transport: stdio", done.stderr)
        done = subprocess.run(PROGRAM, env={**env, "GRAPNEL_PLUGIN": COOKIE}, capture_output=True, text=True, timeout=10)
        self.assertEqual(done.returncode, 1)
        self.assertIn("transport: stdio", done.stderr)


class Session(unittest.TestCase):
    def test_describe_twice(self):
        with start() as p:
            hello = {"hello": {"protocol_version": 1}}
            first, second = p.ask(hello)["describe"], p.ask(hello)["describe"]
            self.assertEqual(first, second)
            self.assertEqual(p.ask({"hello": {"protocol_version": 2}})["describe"]["error"]["code"], "version_mismatch")

    def test_configure(self):
        with start(config={"hooks": ["extra"]}) as p:
            self.assertEqual(p.call(hook="extra").json["contributions"][0]["verdict"], "allow")
            self.assertEqual(p.configure({"bad": 1}), {"rejected": {"pointer": "/bad", "message": "is bad"}})
            self.assertIn("broken", p.configure({"broken": 1})["error"]["message"])
            self.assertIn("already", p.configure({"hooks": ["guard"]})["error"]["message"])
            self.assertEqual(p.call(tool="sees").content["config"], {"hooks": ["extra"]})
            p.configure({})
            self.assertEqual(error_of(p.ask({"dispatch": {"hook": "extra"}}))["plugin_code"], "unknown_hook")


if __name__ == "__main__":
    unittest.main()
