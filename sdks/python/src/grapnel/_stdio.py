"""The descriptors of the protocol. A program that a host has started moves them when it first imports grapnel.

That early, because the first print() would break the protocol. In any other program the import changes nothing.
"""

from __future__ import annotations

import os
import sys

COOKIE = "2f6a0c1e9d4b4b7c8f0e5a73d1c96b28"

descriptors: tuple[int, int] | None = None
"""Where the protocol is read from and written to, after take_over."""


def take_over() -> None:
    """Moves the protocol to descriptors of its own, so that neither Python nor C code nor a child can break it.

    From then on stdin is empty and stdout is stderr. The cookie leaves the environment, where a child would find it.
    """
    global descriptors
    if os.environ.get("GRAPNEL_PLUGIN") != COOKIE or os.environ.get("GRAPNEL_TRANSPORT") != "stdio":
        return
    del os.environ["GRAPNEL_PLUGIN"]
    source, sink = os.dup(0), os.dup(1)  # not inherited by children
    if os.name == "posix":
        os.set_blocking(source, True)
        os.set_blocking(sink, True)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # no stderr
        os.dup2(null, 1)
    if null > 2:
        os.close(null)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    descriptors = source, sink
