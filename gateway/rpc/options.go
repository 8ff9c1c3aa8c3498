package rpc

import (
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Method is a method that clients may call. [Typed] makes one of a Go function.
type Method struct {
	Name, Doc string
	// Right is what the caller must have; [NoRight] for none.
	Right Right
	// Params and Result are JSON Schemas. Where they are nil, [New] generates them
	// for a method that Typed made.
	Params, Result *jsonschema.Schema
	// Call does the work. Several calls may run at once, also of one connection.
	// The params are nil where the client gave none; they are valid JSON within the
	// limits, without duplicate names and without strings that are no text. The
	// context ends with the connection, and when the gateway can wait no longer.
	// A panic is recovered, logged and an internal error.
	Call func(ctx context.Context, c *Caller, params json.RawMessage) (any, error)

	in, out reflect.Type // of Typed; nil else
}

// Notification is a message that the gateway sends by itself over WebSocket
// connections.
type Notification struct {
	Name, Doc string
	// Params is a JSON Schema. Where it is nil, [New] generates it for one that
	// [TypedNotification] made.
	Params *jsonschema.Schema

	in reflect.Type
}

// Options is what a server is made of. The zero value is a server without methods
// that is open to the own machine.
type Options struct {
	Methods       []Method
	Notifications []Notification
	// Types are schemas of types that are generated badly from their Go form.
	Types map[reflect.Type]*jsonschema.Schema

	// Tokens are who is let in. Nil lets in everybody on loopback and on a unix
	// socket, and nobody else; an empty list lets in nobody. Plugins are such callers:
	// a sandbox does not keep them from a socket of their own user's.
	Tokens []Token
	// Hosts are names, with or without a port, by which clients may call the
	// gateway besides localhost and loopback addresses. They keep a hostile page
	// from making its own name point here.
	Hosts []string
	// Origins are origins of pages, like "https://example.org", that may open
	// connections besides the gateway's own.
	Origins []string

	Limits Limits
	// Logger is nil for none.
	Logger *slog.Logger
	// Now is time.Now if nil. It is for rates and durations; deadlines of sockets
	// always go by the system's clock.
	Now func() time.Time
	// OnCall is told of each call behind its end: the method, empty for one that is
	// not known, and the error's code, empty for success. It may be nil, and must
	// return at once.
	OnCall func(method, code string, took time.Duration)
	// OnConn is told how many WebSocket connections are open, after each change.
	// It may be nil, and must return at once.
	OnConn func(open int)
	// OnNotify is told once for each call of [Conn.Notify] what became of it:
	// NotifySent, NotifyCoalesced or NotifyDropped. It may be nil, must return at
	// once, and must not call the connection.
	OnNotify func(outcome string)

	_ struct{}
}

// Limits bound what clients may ask for. Zero fields have the default that stands
// beside them.
type Limits struct {
	// Body is how many bytes a message may have: a POST's body, or a WebSocket
	// message. 2 MiB.
	Body int
	// Batch is how many requests a batch may hold. 50.
	Batch int
	// Depth is how deep a message's JSON may be nested. 32.
	Depth int
	// Connections is how many WebSocket connections each listener may have, half of
	// them of one token. 1,024. Sockets that are none may be an eighth of that
	// besides; when there are more, the oldest idle one is closed.
	Connections int
	// Unauthenticated is how many sockets of each listener may be without a request
	// that was let in, half of them of one address. When there are more, the oldest
	// one is closed. 256.
	Unauthenticated int
	// Rate is how many calls a second each token may make, in bursts of as many; it
	// does not hold for callers on the own machine. Negative is no bound. 200.
	Rate int
	// InFlight is how many messages of one connection are worked on at once; the
	// next ones are not read until one of them is answered. 16.
	InFlight int
	// Memory is how many bytes of messages and answers, of all clients together, may
	// be held at once: read in part, worked on, or not yet read by their clients. A
	// token may have half of that, a connection a quarter; of each a quarter is for
	// long messages that arrive. 128 MiB.
	Memory int
	// Answer is how many bytes the result of a request may have. Of a batch nothing
	// further is done once its answer has more. 16 MiB.
	Answer int
	// Queue is how many notifications wait for a connection that reads slowly. 256.
	Queue int

	// Header is how long the header of an HTTP request may take to arrive. 5 s.
	Header time.Duration
	// UnauthenticatedIdle is how long a socket may be silent of which no request was
	// let in. 10 s.
	UnauthenticatedIdle time.Duration
	// Read is how long a message that has begun may take to arrive, and each 16 KiB of
	// it a third of that. 30 s.
	Read time.Duration
	// Write is how long a peer may take to read a message, for each MiB of it that
	// has begun, and at most for each 16 KiB. 10 s. Where others wait for the memory,
	// a peer that has read nothing for a fifth of that is disconnected.
	Write time.Duration
	// Admission is how long a call waits for memory. Then it is refused. 5 s. Where
	// others wait for a message to arrive, each 16 KiB of it have a tenth of that.
	Admission time.Duration
	// Ping is how long a WebSocket connection may be silent before it is asked for
	// a sign of life; it then has the time of Write. 30 s.
	Ping time.Duration
	// Drain is how long stopping may take, calls in flight included. 10 s.
	Drain time.Duration
}

// sockets is how many sockets a listener may have.
func (l Limits) sockets() int { return l.Connections + l.Connections/8 + 1 }

// writeBy is by when a message of so many bytes must be written.
func (l Limits) writeBy(length int) time.Time {
	return time.Now().Add(l.Write * time.Duration(1+length>>20))
}

// withDefaults fills what is zero.
func (l Limits) withDefaults() Limits {
	orInt := func(n *int, normal int) {
		if *n == 0 {
			*n = normal
		}
	}
	orTime := func(d *time.Duration, normal time.Duration) {
		if *d == 0 {
			*d = normal
		}
	}
	orInt(&l.Body, 2<<20)
	orInt(&l.Batch, 50)
	orInt(&l.Depth, 32)
	orInt(&l.Connections, 1024)
	orInt(&l.Unauthenticated, 256)
	orInt(&l.Rate, 200)
	orInt(&l.InFlight, 16)
	orInt(&l.Memory, 128<<20)
	orInt(&l.Answer, 16<<20)
	orInt(&l.Queue, 256)
	orTime(&l.Header, 5*time.Second)
	orTime(&l.UnauthenticatedIdle, 10*time.Second)
	orTime(&l.Read, 30*time.Second)
	orTime(&l.Write, 10*time.Second)
	orTime(&l.Admission, 5*time.Second)
	orTime(&l.Ping, 30*time.Second)
	orTime(&l.Drain, 10*time.Second)
	return l
}
