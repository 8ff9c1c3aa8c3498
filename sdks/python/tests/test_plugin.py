"""Declaring hooks and tools, and the messages."""

import contextlib
import io
import os
import subprocess
import sys
import unittest
from pathlib import Path

import grapnel
from grapnel import _codec, _types
from grapnel.testing import Host, fixtures, run

CONTRACT = Path(__file__).parents[3]


def new() -> grapnel.Plugin:
    return grapnel.Plugin(name="p", version="1.0.0")


def hook(plugin=None, name="h", phase="", function="tool_pre_call", **options):
    def handler(input, call):
        return None

    handler.__name__ = function
    (plugin or new()).hook(name, phase=phase, **options)(handler)


class Declaring(unittest.TestCase):
    def test_phase_of_a_name(self):
        for name, phase in {
            "tool_pre_call": "tool.pre_call",
            "session_start": "session.start",
            "pre_prompt_compile": "turn.pre_prompt_compile",
            "turn_pre_prompt_compile": "turn.pre_prompt_compile",
            "pre_end": "turn.pre_end",
            "post_turn": "turn.post_turn",
            "pre_tools": "turn.pre_tool_materialization",
            "turn_pre_context": "runtime.turn_pre_context",
            "runtime_pre_context": "runtime.turn_pre_context",
        }.items():
            plugin = new()
            hook(plugin, function=name)
            self.assertEqual(plugin.describe()["hooks"][0]["phase"], phase)

    def test_mistakes(self):
        for options, want in (
            ({"function": "guard"}, "no phase is called 'guard'"),
            ({"phase": "tool.pre_cal"}, "did you mean 'tool.pre_call'?"),
            ({"phase": "x.idle"}, "x.HOST.NAME"),
            ({"kinds": ["desicion"]}, "did you mean 'decision'?"),
            ({"kinds": ["policy"]}, "tool.pre_call does not take policy; it takes decision, rewrite"),
            ({"kinds": "decision"}, "lists of words"),
            ({"role": "transform", "phase": "turn.pre_policy"}, "does not take the role 'transform'"),
            ({"needs": ["user_text"]}, "needs 'user_text', which tool.pre_call does not have; it has tool, arguments"),
            ({"name": "a b"}, "'a b' is not a name"),
            ({"name": ""}, "is not a name"),
            ({"name": "-a"}, "is not a name"),
        ):
            with self.subTest(want), self.assertRaises(ValueError) as caught:
                hook(**options)
            self.assertIn(want, str(caught.exception))
            self.assertIn("plugin 'p', hook ", str(caught.exception))

    def test_declaration_ends_the_program_with_one_sentence(self):
        source = "import grapnel\np = grapnel.Plugin('p', '1')\n@p.hook('g', phase='turn.pre_policy', kinds=['polcy'])\ndef g(): ..."
        ended = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, env={"PYTHONPATH": os.pathsep.join(sys.path)})
        self.assertEqual(ended.stderr, "<string>:3: plugin 'p', hook 'g': unknown kind 'polcy', did you mean 'policy'?\n")
        self.assertEqual(ended.returncode, 1)

    def test_annotation_of_another_phase(self):
        with self.assertRaisesRegex(ValueError, "takes ToolPostCall, but the input of tool.pre_call is ToolPreCall"):

            @new().hook("h")
            def tool_pre_call(input: "grapnel.ToolPostCall", call: grapnel.Call) -> None: ...

    def test_names_are_unique(self):
        plugin = new()
        hook(plugin)
        with self.assertRaisesRegex(ValueError, "the name is taken"):
            hook(plugin)
        plugin.tool("t")(lambda a, c: None)
        with self.assertRaisesRegex(ValueError, "the name is taken"):
            plugin.tool("t")(lambda a, c: None)
        for name in ("a.b", "", "ä"):
            with self.assertRaisesRegex(ValueError, "is not a name"):
                grapnel.Plugin(name=name, version="1")

    def test_description(self):
        plugin = grapnel.Plugin(name="p", version="1", doc="d", requires=["tools"], config_schema={"type": "object"}, concurrency=3)

        @plugin.hook(
            "h", kinds=["prompt_section"], needs=["sections"], priority=5, after=["a.b?"], timeout=0.25, on_failure="fallback",
            fallback=[grapnel.PromptSection(section_id="s", content="c", priority=1)], retry=grapnel.Retry(attempts=2, backoff=0.1),
            idempotent=True, cache=grapnel.Cache(ttl=60, vary=["dir"]), budget=grapnel.TextBudget(chars=10), visibility="debug",
        )  # fmt: skip
        def pre_prompt_compile(input, call):
            """Says something.

            And more."""

        plugin.tool("t", description="does", input={"type": "object"}, hidden_domain="d")(lambda a, c: None)
        want = {
            "name": "p", "version": "1", "doc": "d", "requires": ["tools"], "config_schema_json": {"type": "object"},
            "limits": {"concurrency": 3},
            "hooks": [{
                "name": "h", "doc": "Says something.", "phase": "turn.pre_prompt_compile", "kinds": ["prompt_section"],
                "priority": 5, "after": ["a.b?"], "timeout_ns": 250_000_000, "on_failure": {"default": "fallback"},
                "fallback": [{"priority": 1, "prompt_section": {"section_id": "s", "content": "c"}}],
                "retry": {"attempts": 2, "backoff_ns": 100_000_000}, "idempotent": True,
                "cache": {"ttl_ns": 60_000_000_000, "vary": ["dir"]}, "budget": {"chars": 10}, "visibility": "debug",
                "needs": ["sections"],
            }],
            "tools": [{"name": "t", "description": "does", "input_schema_json": {"type": "object"}, "hidden_domain": "d"}],
        }  # fmt: skip
        self.assertEqual(plugin.describe(), want)
        self.assertEqual(plugin.tools, [grapnel.Tool(name="t", description="does", input_schema={"type": "object"}, hidden_domain="d")])


class Messages(unittest.TestCase):
    def test_every_message_reads_what_it_writes(self):
        for name in _types.__all__:
            cls = getattr(_types, name)
            if cls is _types.Contribution:
                continue
            with self.subTest(name):
                message = cls(**{f.name: sample(note) for f, note in fields(cls)})
                self.assertEqual(cls._read(_codec.decode(_codec.encode(message._write()))), message)
                self.assertIn(name, repr(message))

    def test_fields(self):
        with self.assertRaisesRegex(TypeError, "Decision has no field 'reson'"):
            grapnel.Decision(verdict="deny", reson="x")  # type: ignore[call-arg]
        with self.assertRaisesRegex(TypeError, "Decision needs the field 'verdict'"):
            grapnel.Decision()  # type: ignore[call-arg]
        for section, want in (
            (grapnel.PromptSection(section_id="s", content="c", max_chars=1 << 63), "max_chars: the number does not fit 64 bits"),
            (grapnel.PromptSection(section_id="s", content="c", max_chars=True), "want int, got bool"),
            (grapnel.PromptSection(section_id="s", content="c", frame="x"), "want SectionFrame, got str"),  # type: ignore[arg-type]
            (grapnel.PromptSection(section_id="s", content="c", source_refs="x"), "want list, got str"),  # type: ignore[arg-type]
        ):
            with self.assertRaisesRegex(TypeError, want):
                section._write()

    def test_defaults(self):
        self.assertEqual(grapnel.Decision(verdict="deny", reason="")._write(), {"verdict": "deny"})
        self.assertEqual(grapnel.PromptContext(content="", render=False)._write(), {"content": "", "render": False})
        self.assertEqual(grapnel.Rewrite(path="/a", value=None)._write(), {"path": "/a", "value_json": None})
        self.assertEqual(grapnel.ToolPreCall._read({"tool": None, "new": 1}), grapnel.ToolPreCall())
        self.assertEqual(grapnel.Usage._read({"input_tokens": "5", "output_tokens": 6.0}), grapnel.Usage(input_tokens=5, output_tokens=6))
        text = grapnel.PrePolicy._read({"user_text": {"withheld_chars": 3}}).user_text
        self.assertEqual((text.value, text.withheld, text.withheld_chars), ("", True, 3))


def fields(cls):
    from grapnel._message import fields_of, notes_of

    notes = notes_of(cls)
    return [(f, notes[f.name]) for f in fields_of(cls).values() if not (cls is _types.Text and f.name == "value")]


def sample(note):
    if note.startswith("Sequence["):
        return [sample(note[9:-1])]
    if note.startswith("Mapping["):
        return {"k": sample(note[13:-1])}
    note = note.removesuffix(" | None")
    simple = {"str": "ä", "int": 7, "bool": True, "float": 1.5, "Seconds": 0.25, "JSON": {"a": [None]}}
    if note in simple or note.startswith("Literal"):
        return simple.get(note, "word")
    cls = getattr(_types, note)
    return cls(**{f.name: sample(n) for f, n in fields(cls)})


class Codec(unittest.TestCase):
    def test_both_ways_agree(self):
        for strict, lenient, dumps in (_codec.private(), _codec.public()):
            value = {"a": [1, -2.5, True, None, 'x"\\\n\x7fä\u2028😀'], "": {}}
            self.assertEqual(strict(dumps(value)), value)
            self.assertEqual(dumps(value), '{"a":[1,-2.5,true,null,"x\\"\\\\\\n\x7fä\u2028😀"],"":{}}')
            self.assertEqual(lenient("[1," + "9" * 5000 + "]"), [1, float("inf")])
            for bad in (float("nan"), float("inf"), object(), {1, 2}, b"x"):
                self.assertRaises((TypeError, ValueError), dumps, bad)
            self.assertRaises((TypeError, ValueError), strict, "[NaN]")

    def test_refused_lines(self):
        for line in (b"", b"{", b"{} {}", b"[NaN]", b"\xff", b"nul", b'"\x01"'):
            with self.subTest(line):
                self.assertRaises(ValueError, _codec.decode, line)
        self.assertEqual(_codec.decode(b'{"a":1}\r'), {"a": 1})

    def test_escapes_are_no_nul(self):
        self.assertEqual(_codec.encode("\\u0000"), b'"\\\\u0000"')
        self.assertRaises(ValueError, _codec.encode, "\\\0")

    def test_clean(self):
        self.assertEqual(_codec.clean("a\0b\ud800c\u2066d" + "x" * 9000)[:7], "a\ufffdb?c\ufffdd")
        self.assertEqual(len(_codec.clean("x" * 9000)), 4096)


class Kit(unittest.TestCase):
    def test_fixture_of_the_go_sdk(self):
        plugin = new()

        @plugin.hook("h", kinds=["prompt_section"])
        def pre_prompt_compile(input: grapnel.PrePromptCompile, call: grapnel.Call):
            text = Path(call.context.dir, "name").read_text().strip()
            return grapnel.PromptSection(section_id="s", content=f"{text} in {call.context.dir}")

        fixtures(plugin, CONTRACT / "sdk" / "plugintest" / "testdata")
        with self.assertRaisesRegex(AssertionError, "no fixtures"):
            fixtures(plugin, CONTRACT / "sdk")

    def test_withhold(self):
        plugin = new()

        @plugin.hook("h", kinds=["audit"], needs=["policy"])
        def tool_post_call(input: grapnel.ToolPostCall, call: grapnel.Call):
            seen = [input.tool, input.arguments, input.result.withheld, input.result.original_length, list(call.policies)]
            return grapnel.Audit(event_kind="seen", details=[*seen, *call.withheld])

        case = {"input": {"tool": "t", "arguments": {"a": 1}, "result": "abc"}, "withhold": ["tool", "arguments", "result", "policy"]}
        answer = run(plugin, **case, policies=[grapnel.PolicyEntry(domain="d", key="k", value=1)])
        want = ["t", {"withheld": True, "chars": 8}, True, 3, [], "arguments", "result", "policy"]
        self.assertEqual(answer.json["contributions"][0]["details"], want)
        with self.assertRaisesRegex(AssertionError, "has nothing of"):
            run(plugin, withhold=["user_text"])

    def test_run_finds_fault(self):
        plugin, count = new(), iter(range(10))
        plugin.tool("volatile")(lambda a, c: next(count))
        plugin.tool("deep")(lambda a, c: eval("[" * 40 + "]" * 40))
        plugin.tool("fails")(lambda a, c: 1 / 0)
        with self.assertRaisesRegex(AssertionError, "two answers"):
            run(plugin, tool="volatile")
        run(plugin, tool="volatile", volatile="it counts")
        with self.assertRaisesRegex(AssertionError, "nested deeper"):
            run(plugin, tool="deep")
        with contextlib.redirect_stderr(io.StringIO()) as log:
            with self.assertRaisesRegex(AssertionError, "ends with the code 'error'"):
                run(plugin, tool="fails")
            run(plugin, tool="fails", want_code="error")
        self.assertIn("ZeroDivisionError", log.getvalue())
        with self.assertRaisesRegex(AssertionError, "has no tool 'none'"):
            run(plugin, tool="none")
        with self.assertRaisesRegex(AssertionError, "has no hook 'none'"):
            run(plugin, hook="none")

    def test_async_and_custom(self):
        plugin = new()

        @plugin.hook("h", phase="x.acme.idle", kinds=["audit"])
        async def idle(input: grapnel.Custom, call: grapnel.Call):
            yield grapnel.Audit(event_kind="idle", details=[input.fields, await call.async_host.get_state()])

        answer = run(plugin, input={"for": 5}, host=Host({"state/get": {"value": "kept"}}))
        self.assertEqual(answer.json["contributions"][0]["details"], [{"for": 5}, "kept"])


if __name__ == "__main__":
    unittest.main()
