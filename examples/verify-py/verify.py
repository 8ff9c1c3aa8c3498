#!/usr/bin/env python3
"""Checks a log of manifests, written from docs/MANIFEST.md alone.

    grapnel manifest export > log.jsonl
    sqlite3 log.db "SELECT json_object('hash', hash, 'text', text) FROM texts" > texts.jsonl
    verify.py log.jsonl --texts texts.jsonl [--chain-key FILE] [--fingerprint-key FILE]

It checks of each record that it is canonical JSON, hash, place in its chain, content_hash, hash of the
tools and content maps; with texts the hashes of sections and prompts, and what the maps say about them. Fingerprints
are compared too, which proves nothing.
"""
import argparse
import hashlib
import hmac
import json
import re
import sys
from decimal import Decimal

JOINT = "\n\n"
BOUNDARY = "\n\n<!-- grapnel:dynamic -->\n\n"
HEADING = re.compile(r"## ([^\n]*)\n\n")
HASH = re.compile(r"(hmac-)?sha256:[0-9a-f]{64}")

M = (1 << 64) - 1
P1, P2, P3, P4, P5 = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)


def rotate(x, n):
    return (x << n | x >> (64 - n)) & M


def mix(acc, lane):
    return rotate((acc + lane * P2) & M, 31) * P1 & M


def xxh64(data):
    """XXH64 with the seed 0."""
    word = lambda at, n: int.from_bytes(data[at:at + n], "little")
    at, end = 0, len(data)
    if end >= 32:
        v = [(P1 + P2) & M, P2, 0, -P1 & M]
        while at + 32 <= end:
            for i in range(4):
                v[i] = mix(v[i], word(at + 8 * i, 8))
            at += 32
        h = sum(rotate(x, n) for x, n in zip(v, (1, 7, 12, 18))) & M
        for x in v:
            h = ((h ^ mix(0, x)) * P1 + P4) & M
    else:
        h = P5
    h = (h + end) & M
    while at + 8 <= end:
        h = (rotate(h ^ mix(0, word(at, 8)), 27) * P1 + P4) & M
        at += 8
    if at + 4 <= end:
        h = (rotate(h ^ word(at, 4) * P1 & M, 23) * P2 + P3) & M
        at += 4
    while at < end:
        h = rotate(h ^ data[at] * P5 & M, 11) * P1 & M
        at += 1
    for shift, prime in ((33, P2), (29, P3), (32, 1)):
        h = (h ^ h >> shift) * prime & M
    return h


def number(n):
    """The form of ECMAScript, as RFC 8785 wants it."""
    if isinstance(n, int) and abs(n) < 10**15:
        return str(n)
    f = float(n)
    if f == 0:
        return "0"
    if 1e-6 <= abs(f) < 1e21:
        s = format(Decimal(repr(f)), "f")
        return s[:-2] if s.endswith(".0") else s
    return re.sub(r"e([+-])0+", r"e\1", repr(f))


def canonical(v):
    if isinstance(v, dict):
        keys = sorted(v, key=lambda k: k.encode("utf-16-be"))
        return "{" + ",".join(canonical(k) + ":" + canonical(v[k]) for k in keys) + "}"
    if isinstance(v, list):
        return "[" + ",".join(map(canonical, v)) + "]"
    if isinstance(v, (int, float)) and not isinstance(v, bool):
        return number(v)
    return json.dumps(v, ensure_ascii=False)


def strict(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError("an object has a name twice")
    return dict(pairs)


def content(record):
    """What content_hash covers: fields that do not count have their zero value, or are absent where they may be."""
    c = json.loads(json.dumps(record))

    def zero(row, values, absent=()):
        row.update(values)
        for name in absent:
            row.pop(name, None)

    texts = ("manifest_id", "workspace_id", "thread_id", "turn_id", "session_id", "content_hash", "prev", "hash")
    zero(c, {**dict.fromkeys(texts, ""), "seq": 0, "round": 0, "generation": 0, "created_at": "0001-01-01T00:00:00Z"},
         ("runs_before", "epoch", "actor", "agent_id", "task_id", "mode", "build", "config_hash", "turn_ended", "texts_kept", "blocked", "requests", "host_events"))
    c["cache"] = {"plan": {}, "predicted": None, "actual": None, "broke_at": "", "owner": "", "tokens_lost": 0}
    counters = ("generation", "incarnation", "attempts", "queue_ms", "duration_ms", "bytes_in", "bytes_out")
    for row in c["runs"]:
        zero(row, {**dict.fromkeys(counters, 0), "cached_from": ""}, ("usage",))
        row["state"] = "succeeded" if row["state"] == "cached" else row["state"]
    for row in c["hook_sources"]:
        row["cached_from"] = ""
    for row in c["plugins"]:
        zero(row, {"generation": 0, "restarts": 0, "detail": ""}, ("recycled", "tier_lacks", "absent_paths"))
    for row in c.get("calls", []):
        row.pop("call_id", None)
        row.pop("input", None)
    if c.get("history", {}).get("added"):
        c["history"].pop("previous", None)
        for row in c["history"]["added"]:
            row.pop("id", None)
    for row in [c["budgets"]["turn"]] + c["budgets"]["phases"]:
        zero(row, {"used_ms": 0, "used_chars": 0})
    for row in c["diagnostics"]:
        row["message"] = ""
    return c


class Verifier:
    def __init__(self, chain_key, fingerprint_key, texts):
        self.chain_key, self.fingerprint_key, self.texts = chain_key, fingerprint_key, texts
        self.last, self.problems, self.spans, self.erased = {}, [], 0, False

    def need(self, ok, problem):
        if not ok:
            self.problems.append(f"line {self.line}: {problem}")

    def sha256(self, data, like):
        if not like.startswith("hmac-"):
            return "sha256:" + hashlib.sha256(data).hexdigest()
        if self.chain_key is None:
            return "unknown without --chain-key"
        return "hmac-sha256:" + hmac.new(self.chain_key, data, hashlib.sha256).hexdigest()

    def same(self, text, fingerprint, want, what):
        data = text.encode()
        if not want.startswith("hmac-"):
            sums = f"xxh64:{xxh64(data):016x}", "sha256:" + hashlib.sha256(data).hexdigest()
        elif self.fingerprint_key is None:
            return  # cannot be told
        else:
            sums = ("hmac-sha256:" + hmac.new(self.fingerprint_key, data, hashlib.sha256).hexdigest(),) * 2
        self.need(sums[1] == want, f"{what} has another hash")
        self.need(sums[0] == fingerprint, f"{what} has another fingerprint")

    def record(self, line, text):
        self.line = line
        try:
            r = json.loads(text, object_pairs_hook=strict)
            self.need(canonical(r) == text, "it is not in canonical form")
            self.integrity(r)
            self.tools(r)
            for position, section in enumerate(r["sections"]):
                self.need(section["position"] == position, f"{section['section_id']} has another position")
                self.map(r, section)
            if self.texts is not None:
                self.prompt(r)
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            self.need(False, f"it is no record: {e!r}")

    def integrity(self, r):
        self.erased = self.erased or r["kind"] == "erasure"
        unsigned = {**r, "hash": "", "cache": {**r["cache"], "actual": None}}
        self.need(self.sha256(canonical(unsigned).encode(), r["hash"]) == r["hash"], "its hash is not that of its content")
        self.need(self.sha256(canonical(content(r)).encode(), "") == r["content_hash"], "content_hash is not that of the content")
        thread = r["workspace_id"], r["thread_id"]
        if thread in self.last:
            seq, prev = self.last[thread]
            self.need((r["seq"], r["prev"]) == (seq + 1, prev), "it does not follow the record before it")
        else:
            self.need((r["seq"] == 0) == (r["prev"] == ""), "a first record has no prev, and others have one")
        self.last[thread] = r["seq"], r["hash"]

    def tools(self, r):
        if r["sections"] or "observed" in r:
            offered = [t for t in r["tools"] if "hidden_domain" not in t]
            self.same(canonical(offered), r["fingerprint_tools"], r["hash_tools"], "the list of tools")

    def map(self, r, section):
        sources = {(h["plugin"], h["contribution_id"], h["section_id"]) for h in r["hook_sources"]}
        at = 0
        for span in section["content_map"]:
            self.spans += 1
            self.need(span["offset"] == at and span["length"] > 0, f"{section['section_id']}: a gap in the content map at {at}")
            at = span["offset"] + span["length"]
            if "contribution_id" in span:
                source = span["owner"], span["contribution_id"], section["section_id"]
                self.need(source in sources, f"{section['section_id']}: nobody brought {source[1]}")
            else:
                self.need("observed" in r or span["owner"] in ("builtin", "host"), f"{section['section_id']}: {span['owner']} brought nothing")
        self.need(at == section["chars"], f"{section['section_id']}: the content map covers {at} of {section['chars']} characters")

    def prompt(self, r):
        parts = {"stable": [], "dynamic": [], "without": []}
        for s in r["sections"]:
            text, system = self.texts.get(s["hash"]), s["placement"] == "system"
            if text is None:
                return self.need(self.erased or not r.get("texts_kept"), f"the text of {s['section_id']} is missing")
            self.same(text, s["fingerprint"], s["hash"], s["section_id"])
            heading = HEADING.match(text) if system and "observed" not in r else None
            self.need(bool(heading) == (system and "observed" not in r), f"{s['section_id']} has no heading")
            if heading and not HASH.fullmatch(s["title"]):
                self.need(heading[1] == s["title"], f"{s['section_id']} has another title")
            self.need(len(text) - (heading.end() if heading else 0) == s["chars"], f"{s['section_id']} has another length")
            if system:
                parts[s["stability"]].append(text)
                if s["stability"] == "dynamic" and s["section_id"] != "extra_system":
                    parts["without"].append(text)
        joint, boundary = ("", "") if "observed" in r else (JOINT, BOUNDARY)
        stable, dynamic, without = (joint.join(parts[p]) for p in ("stable", "dynamic", "without"))
        full = boundary.join((stable, dynamic)) if stable and dynamic else stable + dynamic
        for name, part in (("stable", stable), ("dynamic", dynamic), ("dynamic_without_extra_system", without), ("full", full)):
            self.same(part, r["fingerprint_" + name], r["hash_" + name], f"the prompt ({name})")


def key(path):
    return open(path, "rb").read().rstrip(b"\r\n") if path else None


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("log")
    for flag in ("--texts", "--chain-key", "--fingerprint-key"):
        p.add_argument(flag, metavar="FILE")
    a = p.parse_args()
    texts = None
    if a.texts:
        texts = {t["hash"]: t["text"] for t in map(json.loads, open(a.texts, encoding="utf-8"))}
    v = Verifier(key(a.chain_key), key(a.fingerprint_key), texts)
    number_of = 0
    with open(a.log, encoding="utf-8", newline="\n") as log:
        for number_of, line in enumerate(log, 1):
            v.record(number_of, line.rstrip("\n"))
    for problem in v.problems:
        print(problem)
    print(f"{number_of} records of {len(v.last)} threads, {v.spans} spans, {len(v.problems)} problems")
    for (workspace, thread), (seq, head) in v.last.items():
        print(workspace, thread, seq, head)
    sys.exit(1 if v.problems else 0)


if __name__ == "__main__":
    main()
