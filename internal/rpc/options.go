package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
)

// Typed makes a method of a Go function. P is a struct for the params' object.
//
// Decoding is strict: no unknown or duplicate members, exact names, no invalid text or NULs in strings, and members
// without omitempty or omitzero are required. Absent params are an empty object. If P is [json.RawMessage], the
// function decodes.
func Typed[P, R any](name string, right Right, doc string, call func(ctx context.Context, c *Caller, p P) (R, error)) Method {
	known := membersOf(reflect.TypeFor[P]())
	return Method{
		Name: name, Doc: doc, Right: right,
		in: reflect.TypeFor[P](), out: reflect.TypeFor[R](),
		Call: func(ctx context.Context, c *Caller, params json.RawMessage) (any, error) {
			var p P
			if err := decodeParams(params, known, &p); err != nil {
				return nil, err
			}
			return call(ctx, c, p)
		},
	}
}

// TypedNotification describes a notification by the Go type of its params.
func TypedNotification[P any](name, doc string) Notification {
	return Notification{Name: name, Doc: doc, in: reflect.TypeFor[P]()}
}

// members are the names in a struct's JSON. A required one must not become an empty text.
type members struct {
	names, needed []string
}

// membersOf is nil for a type that is not a struct or decodes itself.
func membersOf(t reflect.Type) *members {
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	known := &members{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && name == "" {
			continue
		}
		name = cmp.Or(name, f.Name)
		known.names = append(known.names, name)
		if !strings.Contains(options, "omit") { // omitempty or omitzero
			known.needed = append(known.needed, name)
		}
	}
	return known
}

// decodeParams decodes valid JSON. If known is nil, it accepts any member.
func decodeParams(params json.RawMessage, known *members, into any) error {
	if raw, ok := into.(*json.RawMessage); ok {
		*raw = params
		return nil
	}
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	if params[0] != '{' {
		return Errorf(CodeInvalid, "params: this method takes them by name: an object, not an array")
	}
	missing, err := checkNames(params, known)
	if err != nil {
		return err
	}
	if err := jsonscan.Decode(params, into); err != nil {
		return &Error{Code: CodeInvalid, Message: decodeMessage(err), Err: err}
	}
	if len(missing) > 0 {
		return Errorf(CodeInvalid, "%s: it is missing", missing[0])
	}
	return nil
}

// checkNames refuses unknown members: encoding/json takes "Name" for "name". It returns the required ones that are
// absent or null.
func checkNames(object json.RawMessage, known *members) (missing []string, err error) {
	if known == nil {
		return nil, nil
	}
	missing = slices.Clone(known.needed)
	err = eachMember(jsonscan.Reader(object), true, func(m member) error {
		if !slices.Contains(known.names, m.name) {
			return Errorf(CodeInvalid, "params: unknown member %q%s", clip(m.name), suggest.DidYouMean(m.name, known.names))
		}
		if m.value[0] != 'n' {
			missing = slices.DeleteFunc(missing, func(name string) bool { return name == m.name })
		}
		return nil
	})
	return missing, err
}

func decodeMessage(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at := "params"
		if wrong.Field != "" {
			at += "." + wrong.Field
		}
		return fmt.Sprintf("%s: a %s is not a valid %s", at, wrong.Value, jsonKind(wrong.Type))
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	return "params: " + strings.Replace(text, "unknown field", "unknown member", 1)
}

func jsonKind(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return "integer of its size"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.String:
		return "string"
	case reflect.Slice, reflect.Array:
		return "array"
	default:
		return "object"
	}
}

func clip(text string) string {
	const longest = 64
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "…"
}

// The document that Schema returns.
type methodDoc struct {
	Doc    string             `json:"description"`
	Right  Right              `json:"right,omitempty"`
	Params *jsonschema.Schema `json:"params"`
	Result *jsonschema.Schema `json:"result"`
}

type notificationDoc struct {
	Doc    string             `json:"description"`
	Params *jsonschema.Schema `json:"params"`
}

type document struct {
	Schema        string                     `json:"$schema"`
	Title         string                     `json:"title"`
	Doc           string                     `json:"description"`
	Methods       map[string]methodDoc       `json:"methods"`
	Notifications map[string]notificationDoc `json:"notifications"`
	Errors        []codeDoc                  `json:"errors"`
}

// Schema describes methods with the JSON Schemas of params and results, notifications, and errors. The same methods
// give the same bytes.
func (s *Server) Schema() (json.RawMessage, error) {
	doc := document{
		Schema:  "https://json-schema.org/draft/2020-12/schema",
		Title:   "Grapnel gateway",
		Doc:     "JSON-RPC 2.0 over POST /rpc and WebSocket /ws. Each method's params and result, each notification's params, and the errors: number is the error's code in JSON-RPC, code is its data.code.",
		Methods: make(map[string]methodDoc, len(s.methods)), Notifications: make(map[string]notificationDoc, len(s.notifications)),
		Errors: codes(),
	}
	for name, m := range s.methods {
		doc.Methods[name] = methodDoc{m.Doc, m.Right, m.params, m.result}
	}
	for _, n := range s.notifications {
		doc.Notifications[n.Name] = notificationDoc{n.Doc, n.params}
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("rpc: schema: %w", err)
	}
	return text, nil
}

// Method is a method that clients may call, made by [Typed].
type Method struct {
	Name, Doc string
	// Right is what the caller must have; [NoRight] for none.
	Right Right
	// Call does the work, concurrently with other calls. The params are nil if the client gave none, else valid JSON
	// within the limits, without duplicate names or invalid text. The context ends with the connection, or when a
	// stopping gateway no longer waits. A panic is logged as an internal error.
	Call func(ctx context.Context, c *Caller, params json.RawMessage) (any, error)
	// Foreign is a member of the params that is the JSON of another program, which the method checks and mends itself:
	// it may have duplicate names, invalid text, and more depth than a message. Empty for none.
	Foreign string

	in, out        reflect.Type // of params and result
	params, result *jsonschema.Schema
}

// Notification is sent over WebSocket connections. [TypedNotification] makes one.
type Notification struct {
	Name, Doc string

	in     reflect.Type
	params *jsonschema.Schema
}

// Options configure a server. The zero value has no methods and is open to this machine.
type Options struct {
	Methods       []Method
	Notifications []Notification
	// Schema makes the schema of a type, for [Server.Schema]; nil for none.
	Schema func(t reflect.Type) (*jsonschema.Schema, error)

	// Tokens are the callers. Nil lets in everybody on loopback and on a unix socket, but nobody else; an empty list
	// lets in nobody. Plugins are callers too: a sandbox does not keep them from a socket of their own user.
	Tokens []Token
	// Hosts are names, with or without a port, by which clients may call besides localhost and loopback addresses.
	// They keep a hostile page from making its own name point here.
	Hosts []string
	// Origins are origins of pages, like "https://example.org", that may connect besides the gateway's own.
	Origins []string

	Limits Limits
	// Logger is nil for none.
	Logger *slog.Logger
	// Now is time.Now if nil, for rates and durations. Sockets' deadlines use the system's clock.
	Now func() time.Time

	// OnCall is called after each call with the method (empty if unknown) and the error's code (empty for success);
	// OnConn with the number of open WebSocket connections; OnNotify once for each [Conn.Notify] with its outcome.
	// They may be nil, must return at once, and must not call the connection.
	OnCall   func(method, code string, took time.Duration)
	OnConn   func(open int)
	OnNotify func(outcome string)

	_ struct{}
}

// Limits bound what clients may ask for. Zero fields have the defaults in their comments.
type Limits struct {
	// Body is how many bytes a message may have. 2 MiB.
	Body int
	// Batch is how many requests a batch may have. 50.
	Batch int
	// Depth is how deep the JSON of a message may be nested. 32.
	Depth int
	// Connections is how many WebSocket connections each listener may have, half of them of one token. 1,024. There
	// may be an eighth as many other sockets; beyond that the oldest idle one is closed.
	Connections int
	// Unauthenticated is how many sockets of each listener may have no authenticated request, half of them of one
	// address. Beyond that the oldest one is closed. 256.
	Unauthenticated int
	// Rate is how many calls a second each token may make, in bursts of as many; negative is no bound. Callers on the
	// same machine have none. 200.
	Rate int
	// InFlight is how many messages of a connection are worked on at once. 16.
	InFlight int
	// Memory is how many bytes the messages and answers of all clients may hold at once. A token may have half, a
	// connection a quarter; a quarter of each is for long messages that arrive. 128 MiB.
	Memory int
	// Answer is how many bytes a result may have; a batch stops beyond it. 16 MiB.
	Answer int
	// Queue is how many notifications may wait for a slow connection. 256.
	Queue int

	// Header is how long an HTTP header may take to arrive. 5 s.
	Header time.Duration
	// UnauthenticatedIdle is how long a socket without an authenticated request may be silent. 10 s.
	UnauthenticatedIdle time.Duration
	// Read is how long a message may take to arrive, and a third of it for each 16 KiB. 30 s.
	Read time.Duration
	// Write is how long a peer may take to read each begun MiB of a message, and each 16 KiB. 10 s. If others wait
	// for memory, a peer that reads nothing for a fifth of that is disconnected.
	Write time.Duration
	// Admission is how long a call waits for memory. 5 s. If others wait, each arriving 16 KiB have a tenth of that.
	Admission time.Duration
	// Ping is how long a WebSocket connection may be silent before it is pinged; the pong has the time of Write. 30
	// s.
	Ping time.Duration
	// Drain is how long stopping may take, calls in flight included. 10 s.
	Drain time.Duration

	foreign map[string]string // Method.Foreign of each method that has one
}

func (l Limits) sockets() int { return l.Connections + l.Connections/8 + 1 }

func (l Limits) writeBy(length int) time.Time {
	return time.Now().Add(l.Write * time.Duration(1+length>>20))
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Body: cmp.Or(l.Body, 2<<20), Batch: cmp.Or(l.Batch, 50), Depth: cmp.Or(l.Depth, 32),
		Connections: cmp.Or(l.Connections, 1024), Unauthenticated: cmp.Or(l.Unauthenticated, 256),
		Rate: cmp.Or(l.Rate, 200), InFlight: cmp.Or(l.InFlight, 16),
		Memory: cmp.Or(l.Memory, 128<<20), Answer: cmp.Or(l.Answer, 16<<20), Queue: cmp.Or(l.Queue, 256),
		Header: cmp.Or(l.Header, 5*time.Second), UnauthenticatedIdle: cmp.Or(l.UnauthenticatedIdle, 10*time.Second),
		Read: cmp.Or(l.Read, 30*time.Second), Write: cmp.Or(l.Write, 10*time.Second), Admission: cmp.Or(l.Admission, 5*time.Second),
		Ping: cmp.Or(l.Ping, 30*time.Second), Drain: cmp.Or(l.Drain, 10*time.Second),
	}
}

func (o Options) withDefaults() Options {
	o.Limits = o.Limits.withDefaults()
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Schema == nil {
		o.Schema = func(reflect.Type) (*jsonschema.Schema, error) { return nil, nil } //nolint:nilnil // for none
	}
	if o.OnCall == nil {
		o.OnCall = func(string, string, time.Duration) {}
	}
	if o.OnConn == nil {
		o.OnConn = func(int) {}
	}
	if o.OnNotify == nil {
		o.OnNotify = func(string) {}
	}
	return o
}
