import subprocess
import sys
import unittest
from pathlib import Path

from grapnel.testing import Process, run
from plugin import plugin

HERE = Path(__file__).resolve().parent
CONFIG = {"rules": ["Answer in English.", "Ask before you delete."], "forbidden": ["rm", "sudo"]}


def shell(command: str) -> dict[str, object]:
    return {"tool": "shell", "arguments": {"command": command}}


class Rules(unittest.TestCase):
    def test_section(self) -> None:
        want = {"kind": "prompt_section", "section_id": "house", "title": "House rules", "content": "- Answer in English.\n- Ask before you delete."}
        self.assertEqual(run(plugin, hook="rules", config=CONFIG).json, {"contributions": [want]})
        self.assertEqual(run(plugin, hook="rules").json, {})

    def test_guard(self) -> None:
        for command, code in {"ls": "", "ls; sudo rm x": "forbidden", "echo 'rm'": "forbidden", 'a "b': "unreadable"}.items():
            with self.subTest(command):
                answer = run(plugin, hook="guard", config=CONFIG, input=shell(command))
                self.assertEqual([c["reason_code"] for c in answer.json.get("contributions", [])], [code] if code else [])
        self.assertEqual(run(plugin, hook="guard", input={"tool": "read"}).json, {})

    def test_guard_without_the_grant(self) -> None:
        answer = run(plugin, hook="guard", input=shell("ls"), withhold=["arguments"])
        self.assertEqual(answer.json["contributions"][0]["reason_code"], "unseen")

    def test_tool(self) -> None:
        self.assertEqual(run(plugin, tool="word_count", input={"text": "one two"}).content, "2 words")
        self.assertTrue(run(plugin, tool="word_count", input=[]).is_error)
        (bundle,) = run(plugin, hook="offer", input={"tool_calling": True}).json["contributions"]
        self.assertEqual([t["name"] for t in bundle["tools"]], ["word_count"])


class Programs(unittest.TestCase):
    def test_plugin(self) -> None:
        with Process([sys.executable, str(HERE / "plugin.py")], config=CONFIG) as p:
            self.assertEqual(p.call(tool="word_count", input={"text": "a b c"}).content, "3 words")
            refused = p.configure({"rules": ["a\nb"]})
            self.assertEqual(refused, {"rejected": {"pointer": "/rules/0", "message": "is more than one line"}})
            p.drain()
            self.assertEqual(p.close(), 0)

    def test_plugin_without_a_library(self) -> None:
        program = HERE.parent / "plugin-python-bare" / "plugin.py"
        with Process([sys.executable, str(program)]) as p:
            denied = {"contributions": [{"kind": "decision", "verdict": "deny", "reason": "no shell here"}]}
            self.assertEqual(p.call(input={"tool": "shell"}).json, denied)
            self.assertEqual(p.call(input={"tool": "read"}).json, {})
            self.assertEqual(p.ask({"dance": {}})["unsupported"], {"name": "dance"})
            p.ping()
            p.drain()
            self.assertEqual(p.close(), 0)
        done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (1, ""))


if __name__ == "__main__":
    unittest.main()
