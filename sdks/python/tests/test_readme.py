"""Every code block of the README runs, in one namespace."""

import unittest
from pathlib import Path


class Readme(unittest.TestCase):
    def test_blocks(self):
        text = Path(__file__).parents[1].joinpath("README.md").read_text("utf-8")
        blocks = [block.partition("```")[0] for block in text.split("```python\n")[1:]]
        self.assertEqual(len(blocks), 3)
        names = {"__name__": "readme"}
        for block in blocks:
            exec(compile(block, "README.md", "exec"), names)
        self.assertEqual(names["plugin"].describe()["hooks"][0]["doc"], "Keeps the shell shut.")


if __name__ == "__main__":
    unittest.main()
