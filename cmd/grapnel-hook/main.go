// Command grapnel-hook is what agents start for an event of theirs: it carries the payload from standard input to the
// gateway's socket, and the answer to standard output.
//
//	grapnel-hook [--socket PATH] [--config FILE] [--no-start] [--on-failure block|allow] [--timeout TIME] HOST [EVENT]
//	grapnel-hook [--socket PATH] [--config FILE] [--no-start] --token
//
// The second form is for plugins that call the gateway themselves: it prints the path of the socket and the gateway's token,
// each on a line.
//
// It knows nothing of payloads and answers, so that it stays small, starts fast and never changes: the mapping is the
// gateway's. When no gateway answers, it starts one. What then still fails is blocked (exit code 2, with the reason on
// standard error) or allowed (exit code 0), as --on-failure says; without it, EVENT decides: an event that only brings
// context is allowed, any other is blocked. A failure is also what takes longer than --timeout: most agents would wait
// longer, and then allow.
//
// Stability: stable.
package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/cli/autostart"
)

const (
	exitAllowed = 0
	exitBlocked = 2

	startTime = 8 * time.Second  // for a gateway that is started, on a busy machine
	totalTime = 25 * time.Second // for everything: some agents end a hook after 30 seconds, and allow

	mostPayload = 2 << 20 // what the gateway takes for a message
)

// contextEvents may forbid nothing: their hooks bring text, or see what happened.
var contextEvents = []string{ //nolint:gochecknoglobals // an immutable table
	"SessionStart", "SessionEnd", "Setup", "PostToolUseFailure", "PostModelRequest", "PreModelRequest", "Stop", "SubagentStart", "SubagentStop", "StopFailure",
	"Interrupt", "PreCompact", "PostCompact", "Notification", "InstructionsLoaded", "PermissionDenied", "PreModelSwitch", "PostModelSwitch",
	"ErrorOccurred", "AfterModel", "AfterAgent", "PreCompress", // Copilot's and Gemini's, then Cursor's
	"sessionStart", "sessionEnd", "postToolUseFailure", "stop", "subagentStart", "subagentStop", "afterAgentResponse", "preCompact",
}

func main() {
	f, err := parse(os.Args[1:])
	if err != nil {
		say(err.Error())
		os.Exit(exitBlocked)
	}
	// Nothing that the program waits for has another bound: not standard input, locks, disks, nor what is sent and read.
	var doing atomic.Value
	doing.Store("standard input has no end")
	limit := time.AfterFunc(f.timeout, func() {
		f.fail(doing.Load().(string) + " within " + f.timeout.String() + " (--timeout)") //nolint:forcetypeassert // it is what was stored
	})
	var payload, answer []byte
	if !f.token {
		payload, err = readPayload(os.Stdin, f.room())
	}
	if err == nil {
		answer, err = f.ask(payload, func(what string) { doing.Store(what) })
	}
	if !limit.Stop() {
		select {} // it ends the program
	}
	if err == nil {
		_, err = os.Stdout.Write(answer)
	}
	if err != nil {
		f.fail(err.Error())
	}
}

// room is the longest payload in bytes. That of a call leaves half of it to its result: agents show a result that no hook
// could take as it is.
func (f *flags) room() int64 {
	switch f.event {
	case "PreToolUse", "PermissionRequest", "BeforeTool", "preToolUse", "beforeShellExecution", "beforeMCPExecution":
		return mostPayload / 2
	}
	return mostPayload
}

func readPayload(in io.Reader, most int64) ([]byte, error) {
	payload, err := io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(payload)) > most:
		return nil, errors.New("the payload is longer than " + strconv.FormatInt(most>>20, 10) + " MiB")
	case len(bytes.TrimSpace(payload)) == 0:
		return nil, errors.New("standard input is empty: an agent writes its event there, as a JSON object")
	}
	return payload, nil
}

// fail ends the program without an answer.
func (f *flags) fail(why string) {
	if f.allow || !f.given && slices.Contains(contextEvents, f.event) {
		say(why + " (allowed, as installed)")
		os.Exit(exitAllowed)
	}
	say(why + " (blocked, as installed)")
	os.Exit(exitBlocked)
}

func say(text string) {
	_, _ = os.Stderr.WriteString("grapnel-hook: " + text + "\n") // there is nowhere else to say it
}

// flags are what the command line says.
type flags struct {
	socket, config, host, event string
	noStart, allow              bool
	given                       bool // --on-failure was
	token                       bool // no event is sent
	timeout                     time.Duration
}

var errUsage = errors.New("usage: grapnel-hook [--socket PATH] [--config FILE] [--no-start] [--on-failure block|allow] [--timeout TIME] HOST [EVENT], or --token")

func parse(args []string) (*flags, error) {
	f := &flags{timeout: totalTime}
	args, f.token = cutToken(args)
	for len(args) > 0 && len(args[0]) > 0 && args[0][0] == '-' {
		switch {
		case args[0] == "--no-start":
			f.noStart = true
			args = args[1:]
			continue
		case len(args) < 2:
			return nil, errUsage
		case args[0] == "--socket":
			f.socket = args[1]
		case args[0] == "--config":
			f.config = args[1]
		case args[0] == "--on-failure" && (args[1] == "block" || args[1] == "allow"):
			f.allow, f.given = args[1] == "allow", true
		case args[0] == "--timeout":
			var err error
			if f.timeout, err = time.ParseDuration(args[1]); err != nil || f.timeout <= 0 {
				return nil, errors.New("--timeout " + args[1] + ": give a time such as 25s or 2m")
			}
		default:
			return nil, errUsage
		}
		args = args[2:]
	}
	if len(args) == 0 || len(args) > 2 || !isWord(args[0]) || !isWord(args[len(args)-1]) {
		return nil, errUsage
	}
	if f.host = args[0]; len(args) == 2 {
		f.event = args[1]
	}
	return f, nil
}

// cutToken has the name of a host, which is not asked, in place of --token at the end.
func cutToken(args []string) (rest []string, is bool) {
	if n := len(args) - 1; n >= 0 && args[n] == "--token" {
		return append(slices.Clone(args[:n]), "any"), true
	}
	return args, false
}

// isWord keeps the names of the host and the event from being anything else in a request.
func isWord(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return s != "" && s[0] != '.'
}

// ask sends the payload to the gateway, which is started if none answers. Waiting is called with what it would say if it
// waited too long. A gateway that ends while it has the event is replaced twice: the event is to be judged, and on record.
func (f *flags) ask(payload []byte, waiting func(string)) (answer []byte, err error) {
	socket := f.socket
	if socket == "" {
		if socket, err = autostart.Socket(); err != nil {
			return nil, err
		}
	}
	for range 3 {
		answer, err = f.askAt(socket, payload, waiting)
		if _, lost := errors.AsType[lostError](err); !lost || f.noStart {
			return answer, err
		}
	}
	return nil, errors.New(err.Error() + autostart.Why(socket)) // also of a gateway that was started with a broken configuration
}

func (f *flags) askAt(socket string, payload []byte, waiting func(string)) ([]byte, error) {
	waiting("no gateway has listened at " + socket)
	var conn io.ReadWriteCloser
	var err error
	if f.noStart {
		conn, err = autostart.Connect(socket)
	} else {
		conn, err = autostart.Gateway(socket, f.config, startTime)
	}
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // the answer has been read
	if f.token {
		secret, err := token()
		return []byte(socket + "\n" + secret + "\n"), err
	}
	waiting("the gateway at " + socket + " has not answered")
	return f.exchange(conn, payload)
}
