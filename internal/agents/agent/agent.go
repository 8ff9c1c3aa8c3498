// Package agent has the words in which an agent is described. An [Agent] is data: its events and what they mean here, its
// codec, the files in which its hooks are configured, the rules by which it runs its users' scripts, and the contract that
// all of this was written from. Each agent is one package below internal/agents; package agents lists them.
//
// The engine of the bridge (internal/agents/bridge), the installer (internal/agents/install) and the rules for scripts
// (internal/agents/scripts) read these descriptions and know no agent by name.
//
// Stability: internal.
package agent

import (
	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// Agent is one agent that people run.
type Agent struct {
	Name string
	// Events says what the agent's events mean, by the names that its payloads have.
	Events map[string]Meaning
	// Decode reads a payload. Encode makes the answer to an event, an object to be written as JSON; nil is no answer.
	Decode func(a *Agent, payload []byte) (Event, error)
	Encode func(e *Event, o *Outcome) any
	// ReadRequest reads the request that an event is about from the file that the agent keeps of the conversation, from where
	// it was read before; nil if events have requests themselves, or nothing has them.
	ReadRequest func(e *Event, from Reading) (*compiler.Request, Reading)
	// ReplacesPrompts says that the text of a prompt goes into the system prompt, where it replaces the previous prompt's.
	ReplacesPrompts bool
	// Plugin is the file that the agent loads instead of calling hooks; empty for agents that call hooks.
	Plugin string
	// Install says how hooks are configured.
	Install Install
	// Above are the places of what stands above Grapnel's hooks, as far as files tell.
	Above []AbovePlace
	// Scripts has the rules by which the agent runs its users' scripts; nil if they do not run here and its answers follow no
	// known rules.
	Scripts *Scripts
	// Transcripts reads what the agent keeps of conversations; nil if that is not known.
	Transcripts *Transcripts
	// Contract says where the names of its events can be read; nil without a published package.
	Contract *Contract
}

// Meaning says what one event of an agent is. An event without a step is omitted, for the reason Why.
type Meaning struct {
	Step Step
	Why  string
	// Room is how much text for the model the answer may have.
	Room Room
	// From are the hooks of the agent itself from which a plugin file sends the event.
	From []string
	// Narrow is an event of some tools, where another event is called for all. It is decoded, but never installed.
	Narrow bool
	// OfMod is an event that our mod sends. It is in no contract, and never installed.
	OfMod bool
	// NoHTTP is an event that the agent calls no server for, though it does for others.
	NoHTTP bool
	Script Script
}

// The reasons for which events are omitted by several agents.
const (
	OnlyTells  = "it only tells a person something"
	NoRequests = "requests to the model are the host's; no phase judges or changes them"
	ToolEvent  = "the same is an event of all tools: "
)

// Contract says where the names of an agent's events stand in its newest package of the npm registry.
type Contract struct {
	Package string
	// PerSystem says that Package is followed by the name of the system, and VersionPerSystem that its version is.
	PerSystem, VersionPerSystem bool
	// Files are those to read, below the package. If Run is set, they are a program that prints the contract, or writes it to
	// the file Out.
	Files string
	Run   []string
	Out   string
	// What names the place for people. The names are what the expression Name finds behind the texts From, one behind the
	// other, and before To.
	What, To, Name string
	From           []string
	// Upper says that names begin with a small letter there. Renamed are those that hooks and payloads call otherwise.
	Upper   bool
	Renamed map[string]string
}

// Room is how much text an agent accepts with an answer; the zero value accepts none.
type Room struct {
	Most int
	// UTF16 says that the length is the one that JavaScript sees; otherwise it is in bytes.
	UTF16 bool
}

// Unlimited is the room of agents that state no limit.
const Unlimited = 1 << 30

// Size returns the length of a text as the agent counts it.
func (r Room) Size(text string) int {
	if !r.UTF16 {
		return len(text)
	}
	n := 0
	for _, c := range text {
		if n++; c > 0xffff {
			n++
		}
	}
	return n
}

// Fits reports whether a text may be in an answer.
func (r Room) Fits(text string) bool { return r.Most > 0 && r.Size(text) <= r.Most }

// Decoder returns a [Agent.Decode] that decodes payloads into a P and maps them with a function.
func Decoder[P any](mapped func(a *Agent, p *P) (Event, error)) func(a *Agent, payload []byte) (Event, error) {
	return func(a *Agent, payload []byte) (Event, error) {
		var p P
		if err := jsonscan.DecodeForeign(payload, &p); err != nil {
			return Event{}, err
		}
		return mapped(a, &p)
	}
}
