// Command hosts runs agents of vendors against a fake model on loopback, and shows what each does with what its hooks
// answer: which call ran, what the model and the user got.
//
//	make agents        # the checks, with Claude Code and Codex
//	make agents-soak   # 200 calls to gateways that start, are killed, restarted and reloaded
//	make hosts         # the checks, with the newest versions of all agents
//	make contracts     # compares the events of the newest agents with those that are described
//	go run . -transcripts ../../internal/agents/testdata/home [AGENT...]  # keeps what the pinned agents write of conversations, for TestTranscripts
//	go run . [-check] [-newest] [-run REGEXP] [-count N] [-keep] [claude-code] [codex] [gemini] [opencode]
//
// It gets the agents from the npm registry into the user's cache, once for each version: the packages of a platform, which
// need no Node.js (Gemini CLI does), compared with the checksums in hosts.go. Whatever cannot be had is an error.
//
// A check is a promise: it passes or fails, and .ci/run has those of Claude Code and Codex. Each is a row of the table in
// checks.go. It installs the hooks as a person would, has the fake model make the row's calls, and compares what the calls
// left in the file system, what reached the model, and what grapnel manifest calls has. The hooks start the gateway. To add a
// check, add a row; where the plugin has to do something new, add a case to plugin.go by the row's name in does.
//
// The checks of contracts have a hook of this program instead, with a canned answer: what agents do with it is what the encoders
// of internal/agents rely on.
//
// It runs on Linux, which tells which process listens at a socket.
//
// Stability: internal.
package main
