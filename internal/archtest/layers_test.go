package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// modulePath is the path of the repository's main module. Packages of nested
// modules are named by their folder below the same root.
const modulePath = "github.com/grapnelhq/grapnel"

// layers is the allowed import graph of non-test files, bottom first.
//
// "A, B < C, D;" says that C and D may import A and B. Nothing follows from
// that: an edge that is not written is not allowed, so a package that passes
// on what it got from below names what it uses itself. The standard library is
// always allowed (the word std stands where there is nothing else to say).
//
// Names without a dot in their first element are packages of this repository;
// "x/..." is x and all below it. Others are third parties, subpackages
// included. Three words stand for sets: public (all packages of ours outside
// internal and cmd), third-party, and any.
const layers = `
	# Vocabulary and leaves.
	std < internal/text/suggest;
	internal/text/suggest, internal/text/lazyregexp, github.com/go-json-experiment/json < internal/jsonscan;
	internal/text/suggest, internal/jsonscan < phases, internal/..., cmd/..., compiler, config, gateway, manifest, plugins/...,
	runtime, sdk, sdk/plugintest, sdk/serve, store;
	std < internal/text/lazyregexp, tools/count;
	internal/text/lazyregexp < cmd/grapnel, config, gateway, internal/api, internal/agents/..., internal/cond, internal/configschema, plugins/mcp/internal/mcpclient, internal/skillset, internal/toolschema,
	internal/facts/..., internal/memory/..., internal/proc, internal/text, plugins/cedar;
	std < internal/tree;
	std < internal/archtest;
	std < internal/recent;
	std < internal/owned;
	internal/owned < config;
	std < plugins/internal/procgroup;
	plugins/internal/procgroup < plugins/mcp/internal/mcpclient, plugins/commandhooks;
	golang.org/x/sys < internal/proc/sandbox, internal/proc/peer;
	github.com/cespare/xxhash/v2, github.com/go-json-experiment/json < internal/digest;
	github.com/rivo/uniseg, golang.org/x/text < internal/text;

	# Documents and pure cores.
	internal/digest < internal/digest/digesttest;
	phases, internal/digest, github.com/google/jsonschema-go, github.com/go-json-experiment/json < manifest;
	phases, github.com/goccy/go-yaml, github.com/google/jsonschema-go < config;
	phases, internal/text < internal/engine/sections;
	phases, manifest, internal/digest, internal/engine/sections, internal/text < compiler;
	phases, manifest, internal/engine/sections, internal/text < internal/persona;
	phases, github.com/expr-lang/expr < internal/cond;
	phases, internal/cond, internal/engine/sections < internal/engine/plan;
	phases < internal/toolschema;
	phases, internal/digest, internal/engine/sections, internal/text, internal/toolschema < internal/engine/merge;
	phases, internal/text < internal/engine/stats;
	internal/text < internal/text/words;
	phases, config, manifest, compiler, internal/persona, internal/engine/plan, internal/engine/sections, internal/text, internal/text/words < internal/explain;
	phases, config, manifest, internal/digest, internal/engine/merge, internal/engine/plan, internal/engine/sections, internal/text/suggest, internal/text < internal/engine/turnstate;
	phases, manifest, internal/recent < internal/engine/sessions;
	phases, internal/engine/merge, internal/recent, internal/engine/turnstate < internal/engine/answers;

	# Background work.
	phases < internal/engine/jobs;
	phases, internal/engine/jobs < internal/engine/memqueue;
	phases, internal/engine/jobs, internal/engine/memqueue < internal/engine/background;

	# The author's side.
	phases, internal/text < sdk;
	phases, sdk, internal/proc/peer, internal/wire, github.com/hashicorp/go-plugin,
	github.com/hashicorp/go-hclog < sdk/serve;
	phases, sdk, sdk/serve, runtime, internal/conformance, internal/wire, golang.org/x/tools < sdk/plugintest;

	# The wire and the processes.
	phases, internal/engine/callctx, internal/wire/..., google.golang.org/grpc,
	google.golang.org/protobuf, github.com/go-json-experiment/json, golang.org/x/sys < internal/wire/...;
	phases, internal/proc/peer, internal/proc/sandbox, internal/wire,
	golang.org/x/sys < internal/proc;

	phases, github.com/google/jsonschema-go < internal/configschema;
	phases, internal/configschema, internal/proc, internal/toolschema, internal/wire < internal/conformance;

	# Calls that may hang, and the plugins that run.
	phases < internal/engine/bounded;
	phases, config, internal/engine/bounded, internal/engine/callctx, internal/configschema, internal/text/suggest, internal/wire, internal/proc, internal/proc/sandbox,
	internal/engine/supervise < internal/engine/pool;

	# The engine.
	std < internal/engine/callctx;
	phases, manifest, internal/engine/bounded < internal/engine/keeper;
	phases, config, internal/engine/bounded, internal/configschema, internal/recent, internal/text, internal/engine/turnstate,
	github.com/google/jsonschema-go < internal/engine/hostservice;
	phases, config, manifest, compiler, internal/engine/jobs, internal/engine/answers, internal/engine/background, internal/engine/bounded, internal/engine/callctx,
	internal/cond, internal/digest, internal/engine/hostservice, internal/engine/keeper, internal/engine/merge, internal/persona, internal/engine/plan,
	internal/engine/pool, internal/engine/sessions, internal/engine/stats, internal/engine/supervise, internal/facts, internal/text, internal/engine/turnstate, internal/wire,
	github.com/oklog/ulid/v2 < runtime;

	# What stands on the engine. Drivers of databases and providers are added
	# beside the package that needs them.
	github.com/jackc/pgx/v5, github.com/pressly/goose/v3, modernc.org/sqlite < internal/sqldb;
	internal/sqldb < internal/sqldb/schema;
	github.com/transparency-dev/formats, golang.org/x/mod < internal/translog;
	internal/tree, internal/sqldb, github.com/oklog/ulid/v2 < store/internal/treestore;
	phases, internal/engine/jobs, internal/sqldb < store/internal/jobqueue;
	phases, internal/engine/jobs, internal/tree, manifest, internal/digest, internal/translog, internal/sqldb/schema, internal/sqldb, store/internal/treestore, store/internal/jobqueue,
	golang.org/x/mod, github.com/oklog/ulid/v2 < store;
	internal/sqldb/schema, internal/sqldb, store, internal/tree, go.uber.org/goleak < internal/tests/storetest;

	# The API of OpenTelemetry: neither its globals nor its SDK.
	phases, internal/engine/jobs, manifest, runtime, go.opentelemetry.io/otel/attribute, go.opentelemetry.io/otel/codes, go.opentelemetry.io/otel/metric,
	go.opentelemetry.io/otel/propagation, go.opentelemetry.io/otel/trace < telemetry;

	# What every agent loop does.
	phases, manifest, compiler, runtime, sdk < loop;
	phases, compiler, manifest, runtime, loop < internal/framework;
	phases, config, manifest, runtime, sdk, loop < internal/tests/looptest;

	# What plugins were sent, kept and sent again.
	phases, runtime < internal/cli/record;
	phases, internal/cli/record, runtime, internal/digest < internal/cli/replay;

	manifest < internal/cli/logexport;
	phases, manifest, compiler, runtime, store, github.com/google/jsonschema-go < internal/api;
	phases, internal/recent, github.com/coder/websocket, github.com/google/jsonschema-go, github.com/go-json-experiment/json,
	golang.org/x/time < internal/rpc, internal/proc;
	internal/tree, internal/proc/peer, github.com/coder/websocket < internal/cli/client;
	phases, manifest, compiler, runtime, loop, sdk, internal/agents/agent < internal/agents/bridge;
	internal/agents, internal/agents/agent, internal/agents/bridge, internal/agents/backtest < gateway;
	# What a configuration would have decided about agents' transcripts.
	phases, config, loop, runtime, store, internal/agents/agent, internal/agents/bridge, internal/agents/inputlog, internal/facts/secret,
	internal/digest, internal/proc/sandbox, internal/text, internal/text/words < internal/agents/backtest;
	internal/agents, internal/agents/agent < internal/agents/contracts;
	internal/agents/agent, internal/agents/pluginfile, internal/agentsdoc/fsview, github.com/BurntSushi/toml, github.com/tailscale/hujson < internal/agents/above;
	internal/agents, internal/agents/agent, internal/agents/contracts < tools/hosts;
	phases, manifest, store, internal/agents, internal/agents/agent, internal/agents/transcript < internal/agents/inputlog;
	phases, internal/agents, internal/agents/agent, internal/agents/pluginfile, internal/agents/scripts, github.com/BurntSushi/toml, github.com/tailscale/hujson < internal/agents/install;
	phases, config, internal/engine/jobs, manifest, compiler, runtime, history, loop, store, internal/tree, sdk, internal/rpc, internal/recent, internal/api, internal/explain, internal/text,
	github.com/prometheus/client_golang < gateway;
	std < gateway/internal/web;
	# What agents start, and the socket where that finds a gateway.
	internal/owned < internal/cli/autostart, cmd/grapnel-hook;
	internal/cli/autostart < cmd/grapnel-hook;
	# Agents that speak the Model Context Protocol; only who serves them links its SDK.
	phases, github.com/modelcontextprotocol/go-sdk < internal/mcpserver;
	gateway/internal/web, internal/mcpserver < gateway;
	phases, manifest, github.com/tiktoken-go/tokenizer < history;
	phases, manifest, compiler, history, internal/digest, internal/toolschema < providers;
	phases, manifest, history, providers, compiler,
	github.com/anthropics/anthropic-sdk-go < providers/anthropic;
	phases, history, providers, compiler,
	github.com/openai/openai-go/v3 < providers/openai;
	phases, history, internal/digest, providers, compiler,
	google.golang.org/genai < providers/gemini;
	manifest, providers/internal/... < providers/internal/prefixcache;
	std < internal/tests/oracle;

	# Plugins, written as a stranger would write them: each knows the sdk and
	# itself. Only their mains serve a process.
	phases, sdk, internal/agentsdoc/..., github.com/google/jsonschema-go,
	golang.org/x/sys < internal/agentsdoc/..., plugins/agentsdoc;
	plugins/agentsdoc < plugins/agentsdoc/cmd/...;
	internal/configschema < internal/agentsdoc/settings;
	internal/agentsdoc/fsview, golang.org/x/sys < plugins/agentsdoc/internal/watch;
	plugins/agentsdoc/internal/watch < plugins/agentsdoc;
	github.com/fsnotify/fsnotify < plugins/agentsdoc/internal/watch;
	golang.org/x/text < internal/agentsdoc/agentsdoctest;
	phases, sdk, plugins/scripted/... < plugins/scripted/...;
	# The guard of files reads commands as a shell does, and .gitignore as git does.
	mvdan.cc/sh/v3 < internal/facts/shell;
	internal/facts/shell, golang.org/x/text < internal/facts/protect;
	internal/jsonscan, github.com/go-json-experiment/json < internal/facts/argument;
	internal/facts/argument, internal/facts/protect, internal/facts/shell, internal/agentsdoc/ignore, internal/facts/secret, github.com/go-json-experiment/json < internal/facts/guard;
	phases, internal/facts/... < internal/facts;
	phases, sdk, internal/facts/guard, internal/facts/protect, internal/facts/secret < plugins/fileguard;
	plugins/fileguard < plugins/fileguard/cmd/...;
	phases, sdk, internal/facts, github.com/cedar-policy/cedar-go < plugins/cedar;
	plugins/cedar < plugins/cedar/cmd/...;
	phases, sdk, internal/skillset < plugins/skills;
	plugins/skills < plugins/skills/cmd/...;
	phases, manifest, compiler < internal/agents/agent;
	internal/jsonscan, internal/agents/agent < internal/agents/transcript;
	phases, manifest, compiler, internal/agents/agent, internal/agents/transcript < internal/agents/claudecode;
	phases, manifest, compiler, internal/owned, internal/agents/agent, internal/agents/claudecode, internal/agents/transcript < internal/agents/codex;
	phases, internal/agents/agent, internal/agents/claudecode, internal/agents/transcript < internal/agents/copilot;
	phases, manifest, compiler, internal/agents/agent, internal/agents/claudecode, internal/agents/transcript < internal/agents/gemini;
	internal/agents/agent, internal/agents/claudecode < internal/agents/vscode;
	phases, internal/agents/agent < internal/agents/cursor;
	phases, manifest, compiler, internal/agents/agent < internal/agents/pluginfile;
	internal/agents/agent, internal/agents/pluginfile < internal/agents/amp;
	internal/agents/agent, internal/agents/pluginfile, internal/agents/transcript < internal/agents/opencode;
	phases, manifest, internal/agents/agent, internal/agents/amp, internal/agents/claudecode, internal/agents/codex, internal/agents/copilot, internal/agents/cursor,
	internal/agents/gemini, internal/agents/opencode, internal/agents/vscode < internal/agents;
	internal/agents, internal/agents/agent, github.com/tailscale/hujson < internal/agents/scripts;
	phases, sdk, internal/agents/agent, internal/agents/scripts, internal/recent < plugins/commandhooks;
	plugins/commandhooks < plugins/commandhooks/cmd/...;
	github.com/goccy/go-yaml, phases, internal/text/suggest, internal/text/words, internal/agentsdoc/fsview, internal/agentsdoc/pathglob < internal/skillset;
	# Servers of the Model Context Protocol, and the plugin that brings their tools.
	phases, sdk, internal/toolschema, github.com/modelcontextprotocol/go-sdk < plugins/mcp/internal/mcpclient;
	phases, manifest, sdk, plugins/mcp/internal/mcpclient < plugins/mcp;
	plugins/mcp < plugins/mcp/cmd/...;
	# The memory owns a database as a stranger's plugin would, by sqldb; only the hooks
	# and the command know the sdk, the cores below them are values in, values out.
	phases, golang.org/x/text < internal/memory/turnpolicy;
	github.com/blevesearch/snowballstem, golang.org/x/text < internal/memory/recall;
	std < internal/facts/secret;
	internal/facts/secret < plugins/memory;
	github.com/BurntSushi/toml < tools/gitleaks;
	internal/memory/recall, internal/memory/turnpolicy, internal/sqldb, github.com/oklog/ulid/v2 < internal/memory/itemstore;
	phases, sdk, internal/memory/itemstore, internal/memory/turnpolicy < plugins/memory/internal/toolset;
	sdk < internal/skillset, internal/memory/..., plugins/memory/internal/toolset;
	phases, sdk, internal/sqldb, internal/memory/..., plugins/memory/internal/toolset < plugins/memory;
	plugins/memory < plugins/memory/cmd/...;
	sdk/serve < plugins/agentsdoc/cmd/..., plugins/cedar/cmd/..., plugins/commandhooks/cmd/..., plugins/fileguard/cmd/..., plugins/mcp/cmd/..., plugins/memory/cmd/..., plugins/scripted/cmd/..., plugins/skills/cmd/...;

	# Measuring, wiring, showing.
	phases, sdk, config, runtime, internal/wire, github.com/hashicorp/go-plugin,
	github.com/hashicorp/go-hclog, google.golang.org/grpc,
	google.golang.org/protobuf < internal/tests/bench/...;
	any < cmd/..., internal/docs/docgen, internal/docs/kitgen;
	internal/framework, internal/tests/looptest < adapters/...;
	public, third-party < examples/..., adapters/..., gateway/internal/web/build, tools/hosts;
`

// edgeRule is one line of the text: packages that match pkg may import what
// one of the imports matches.
type edgeRule struct {
	pkg     string
	imports []string
}

// ruleSet is the parsed text. A package has the rights of all rules that match
// it together.
type ruleSet []edgeRule

// parseRules reads text of the form of layers.
func parseRules(text string) (ruleSet, error) {
	var lines []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		lines = append(lines, line)
	}
	var rules ruleSet
	for stmt := range strings.SplitSeq(strings.Join(lines, " "), ";") {
		if strings.TrimSpace(stmt) == "" {
			continue
		}
		left, right, ok := strings.Cut(stmt, "<")
		imports, pkgs := nameList(left), nameList(right)
		if !ok || imports == nil || pkgs == nil {
			return nil, fmt.Errorf("want \"A, B < C, D\", got %q", strings.Join(strings.Fields(stmt), " "))
		}
		for _, pkg := range pkgs {
			rules = append(rules, edgeRule{pkg: pkg, imports: imports})
		}
	}
	return rules, nil
}

// nameList splits a comma list of names. It returns nil when there is none, or
// when one of them is no name.
func nameList(text string) []string {
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if name == "" || strings.ContainsAny(name, " \t\n<") {
			return nil
		}
		names = append(names, name)
	}
	return names
}

// covers reports whether any rule speaks of the package, a path below the
// repository's root.
func (r ruleSet) covers(pkg string) bool {
	return slices.ContainsFunc(r, func(e edgeRule) bool { return matchPath(e.pkg, pkg) })
}

// allows reports whether pkg may import the import path imp.
func (r ruleSet) allows(pkg, imp string) bool {
	if isStd(imp) {
		return true
	}
	for _, e := range r {
		if matchPath(e.pkg, pkg) && slices.ContainsFunc(e.imports, func(p string) bool { return matchImport(p, imp) }) {
			return true
		}
	}
	return false
}

// matchImport reports whether a name from the left side of a rule stands for
// the import path imp, which is not of the standard library.
func matchImport(name, imp string) bool {
	own, isOwn := ownPath(imp)
	switch {
	case name == "any":
		return true
	case name == "third-party":
		return !isOwn
	case name == "public":
		return isOwn && isPublic(own)
	case isOwn:
		return matchPath(name, own)
	default:
		return imp == name || strings.HasPrefix(imp, name+"/")
	}
}

// matchPath reports whether pattern, a path or "path/...", stands for path.
func matchPath(pattern, path string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	}
	return pattern == path
}

// ownPath cuts the module path off an import path of this repository. The
// root package is ".".
func ownPath(imp string) (string, bool) {
	if imp == modulePath {
		return ".", true
	}
	return strings.CutPrefix(imp, modulePath+"/")
}

// isStd reports whether an import path is the standard library's. Import "C"
// is not: no package of ours uses cgo.
func isStd(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return imp != "C" && !strings.Contains(first, ".")
}

// isPublic reports whether strangers can and should import a package.
func isPublic(pkg string) bool {
	elems := strings.Split(pkg, "/")
	return !slices.Contains(elems, "internal") && !slices.Contains(elems, "cmd")
}
