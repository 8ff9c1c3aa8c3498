package config

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// Config is one loaded grapnel.yaml, checked as far as the file alone allows. It is
// not changed after loading and safe for concurrent reading.
type Config struct {
	// Version is the schema of the file; 1.
	Version int     `json:"version"`
	Budgets Budgets `json:"budgets,omitzero"`
	// Plugins in the order of the file. Names are unique.
	Plugins []Plugin `json:"plugins,omitempty"`
	// Pin is "" or "required": then a command without checksum is an error.
	Pin string `json:"pin,omitempty"`
	// Store is a DSN, "sqlite:PATH" or "postgres://…"; empty keeps nothing.
	Store    Secret   `json:"store,omitzero"`
	Manifest Manifest `json:"manifest,omitzero"`
	// Serve is for the gateway.
	Serve Serve `json:"serve,omitzero"`

	source *source
}

type source struct {
	*report

	root *node
}

// Budgets bound turns and phases.
type Budgets struct {
	Turn   TurnBudget                   `json:"turn,omitzero"`
	Phases map[phases.Phase]PhaseBudget `json:"phases,omitempty"`
}

// TurnBudget bounds a turn. Zero fields mean the defaults, 10 s and 64,000.
type TurnBudget struct {
	// Time bounds the wall time of all blocking phases of a turn together.
	Time phases.Duration `json:"time,omitempty"`
	// Chars bounds the text of all hook sections together, in characters.
	Chars int `json:"chars,omitempty"`
}

// PhaseBudget bounds one phase.
type PhaseBudget struct {
	// Time of 0 means the phase's default.
	Time phases.Duration `json:"time,omitempty"`
	// Require names subscriptions that must have completed.
	Require []string `json:"require,omitempty"`
}

// Plugin declares one plugin: a name, and Builtin or Command, or neither for one that the host runs in process.
type Plugin struct {
	Name string `json:"name"`
	// Builtin names a plugin that the host knows how to start.
	Builtin string `json:"builtin,omitempty"`
	// Command is a program: an absolute path, a path relative to the file's
	// directory, or a bare name that is looked up in PATH.
	Command string `json:"command,omitempty"`
	// Path is Command as [ResolveCommand] resolved it. The program need not exist.
	Path string   `json:"-"`
	Args []string `json:"args,omitempty"`
	// SHA256 pins the program, Pins its interpreters by path; lower-case hex.
	SHA256 string            `json:"sha256,omitempty"`
	Pins   map[string]string `json:"pins,omitempty"`
	// UnsafePath accepts a program that others may replace.
	UnsafePath bool          `json:"unsafe_path,omitempty"`
	Grants     phases.Grants `json:"grants,omitzero"`
	Env        Env           `json:"env,omitzero"`
	Limits     Limits        `json:"limits,omitzero"`
	// Sandbox is "", "T0", "T1" or "T2". Grants of single places raise "" to T1.
	Sandbox string `json:"sandbox,omitempty"`
	// TLS makes host and plugin authenticate each other with certificates.
	TLS bool `json:"tls,omitempty"`
	// Transport is "" or "grpc", or "stdio": how a command speaks with the host.
	Transport string `json:"transport,omitempty"`
	// Reload is "" or "exclusive": stop the old process before the new one starts.
	Reload string `json:"reload,omitempty"`
	// OnFailure is "", "fail_closed" or "fail_open": what phases in which the plugin may decide or rewrite do until it has
	// started and its hooks are known.
	OnFailure string `json:"on_failure,omitempty"`
	// Subscriptions are the operator's changes, by full subscription id.
	Subscriptions map[string]phases.Override `json:"subscriptions,omitempty"`
	// Config is the plugin's own configuration as a JSON object, with values
	// from the environment filled in; nil without one.
	Config json.RawMessage `json:"config,omitempty"`

	redacted json.RawMessage   // what Shown returns; nil without secrets
	secrets  map[string]string // what Secrets returns
}

// MarshalJSON implements json.Marshaler. Values from the environment print as "***".
func (p Plugin) MarshalJSON() ([]byte, error) {
	type plain Plugin // without this method
	if p.redacted != nil {
		p.Config = p.redacted
	}
	return json.Marshal(plain(p))
}

// String implements fmt.Stringer with the JSON form, which shows no secrets.
func (p Plugin) String() string {
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Sprintf("plugin %q", p.Name)
	}
	return string(text)
}

// GoString implements fmt.GoStringer; see String.
func (p Plugin) GoString() string { return p.String() }

// Env is a plugin's environment. Nothing else of the host's reaches it.
type Env struct {
	// Pass names variables that are passed on if they are set.
	Pass []string          `json:"pass,omitempty"`
	Set  map[string]Secret `json:"set,omitempty"`
}

// Limits bound one plugin. Zero fields mean the defaults.
type Limits struct {
	// Memory bounds the resident memory; 0 does not.
	Memory Size `json:"memory,omitempty"`
	// Concurrency is the most calls at once; default 32.
	Concurrency int `json:"concurrency,omitempty"`
	// Frame is the largest message either way; default 4 MiB, at most 16 MiB.
	Frame Size `json:"frame,omitempty"`
	// Start bounds a start up to the accepted configuration; default 10 s.
	Start phases.Duration `json:"start,omitempty"`
	// Tool bounds one call of a tool, including the wait for the plugin; default 60 s.
	Tool phases.Duration `json:"tool,omitempty"`
	// Recycle replaces its process from time to time.
	Recycle Recycle `json:"recycle,omitzero"`
	// Model bounds its calls of the host service "model".
	Model ModelBudget `json:"model,omitzero"`
}

// Recycle says after what age, and after how many calls, a healthy process is replaced, for programs that leak. Zero
// fields mean never; up to a fifth is subtracted at random.
type Recycle struct {
	Age   phases.Duration `json:"age,omitempty"`
	Calls int             `json:"calls,omitempty"`
}

// ModelBudget bounds a plugin's use of the host's model. Calls and OutputTokens (of
// all answers) count for one turn, or for one dispatch, tool call or background job
// outside of any. Zero fields mean the defaults: 4, 4,000 and 20 s for one call.
type ModelBudget struct {
	Calls        int             `json:"calls,omitempty"`
	OutputTokens int             `json:"output_tokens,omitempty"`
	Time         phases.Duration `json:"time,omitempty"`
}

// Manifest says how manifests are made and kept.
type Manifest struct {
	// KeepText keeps the texts of prompts and reminders, and the arguments and facts of tool calls, in the store.
	KeepText bool `json:"keep_text,omitempty"`
	// KeepInputs is "off" (default) or "calls": the arguments and results of tool calls, and prompts, are kept like texts.
	KeepInputs string `json:"keep_inputs,omitempty"`
	// FingerprintKey keys hashes and fingerprints, so that short texts cannot be guessed.
	FingerprintKey Secret `json:"fingerprint_key,omitzero"`
	// ChainKey keys the hashes of kept manifests, so that nobody without it can forge the log.
	ChainKey Secret `json:"chain_key,omitzero"`
	// Labels is "full" (default) or "hash", for titles, reasons, labels and paths.
	Labels string `json:"labels,omitempty"`
	// OnFailure is "warn" (default) or "refuse": what a turn does if its manifest cannot be written.
	OnFailure string `json:"on_failure,omitempty"`
	// Retention says what "grapnel manifest prune" takes away.
	Retention Retention `json:"retention,omitzero"`
}

// Retention says which manifests may go: what either rule covers. Zero fields are no rule.
type Retention struct {
	Older phases.Duration `json:"older,omitempty"`
	Keep  int             `json:"keep,omitempty"`
	// Workspaces have rules of their own instead, by id.
	Workspaces map[string]WorkspaceRetention `json:"workspaces,omitempty"`
}

// WorkspaceRetention is the [Retention] of one workspace.
type WorkspaceRetention struct {
	Older phases.Duration `json:"older,omitempty"`
	Keep  int             `json:"keep,omitempty"`
}

// Serve says what the gateway allows its clients. The zero value allows no directory, and requests to loopback only.
type Serve struct {
	// Roots are absolute paths of directories that contain the working directories of clients' turns.
	Roots []string `json:"roots,omitempty"`
	// Hosts are names, without ports, under which the gateway may be reached beside those of loopback.
	Hosts []string `json:"hosts,omitempty"`
	// Origins are those of web pages that may call the gateway beside its own:
	// "https://HOST", with a port unless it is the scheme's own.
	Origins []string `json:"origins,omitempty"`
	// TurnIdle is how long a turn that a client has begun is kept without a call, and
	// Turns how many are kept. Zero is the gateway's default.
	TurnIdle phases.Duration `json:"turn_idle,omitempty"`
	Turns    int             `json:"turns,omitempty"`
	// Watch reloads the configuration and the token file when they change.
	Watch bool `json:"watch,omitempty"`
	// Conversations are kept for clients in the workspaces that it names.
	Conversations Conversations `json:"conversations,omitzero"`
}

// Conversations says for whom the gateway keeps conversations, and how much of one goes behind a prompt.
type Conversations struct {
	// Workspaces are ids, or "*" for all. None keeps nothing.
	Workspaces []string `json:"workspaces,omitempty"`
	// ContextTokens is how much the model reads, ReserveTokens what of it is kept free for the response, and MaxEntries
	// bounds what is sent. Zero means the defaults; 200 entries.
	ContextTokens int `json:"context_tokens,omitempty"`
	ReserveTokens int `json:"reserve_tokens,omitempty"`
	MaxEntries    int `json:"max_entries,omitempty"`
}

// The defaults and bounds of budgets and limits.
const (
	// TransportStdio is the other Plugin.Transport.
	TransportStdio = "stdio"
	// FailOpen is the other Plugin.OnFailure.
	FailOpen           = "fail_open"
	DefaultTurnTime    = 10 * time.Second
	DefaultTurnChars   = 64000
	DefaultConcurrency = 32
	DefaultFrame       = 4 << 20
	maxFrame           = 16 << 20
	DefaultStart       = 10 * time.Second
	DefaultTool        = 60 * time.Second

	DefaultModelCalls        = 4
	DefaultModelOutputTokens = 4000
	DefaultModelTime         = 20 * time.Second

	DefaultContextTokens = 128_000
	DefaultReserveTokens = 16_000

	minFrame       = 1 << 10
	maxConcurrency = 1024
	maxAttempts    = 10
	maxTurns       = 100_000
	maxContext     = 100_000_000
	maxWindow      = 10_000
)
