//go:build unix

package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// fillUp fills memory until the process holds as many MiB as "until=" says, and
// then says so; it returns what it holds. Without it 1 GiB is the end: a machine must survive its tests.
func (p *badProgram) fillUp() [][]byte {
	until, err := strconv.Atoi(p.Arg("until"))
	if err != nil {
		until = 1 << 10
	}
	const step = 4 << 20
	var all [][]byte
	for len(all) < until<<20/step && resident() < until<<20 {
		block := bytes.Repeat([]byte{1}, step)
		all = append(all, block)
	}
	_, _ = fmt.Fprintf(p.Stderr, "holds %d MiB in %d blocks\n", resident()>>20, len(all))
	return all
}

// keepMemory keeps memory from being freed, and does not return.
func keepMemory(ctx context.Context, all [][]byte) error {
	for {
		pause(context.WithoutCancel(ctx), time.Hour)
		for _, block := range all {
			block[0]++
		}
	}
}

// resident is the resident memory of this process, 0 where the system does not tell.
func resident() int {
	data, _ := os.ReadFile("/proc/self/statm")
	var size, pages int
	_, _ = fmt.Sscan(string(data), &size, &pages)
	return pages * os.Getpagesize()
}

// reach tries to read, to write and to connect to what the arguments name, and answers with what came of it, a line each.
func reach(ctx context.Context, p *badProgram, _ *sdk.Call) ([]phases.Contribution, error) {
	data, readErr := os.ReadFile(p.Arg("read"))
	writeErr := os.WriteFile(p.Arg("write"), []byte("written"), 0o600)
	conn, connectErr := (&net.Dialer{}).DialContext(ctx, "tcp", p.Arg("connect"))
	if connectErr == nil {
		connectErr = conn.Close()
	}
	return sdk.Reply(&phases.PromptSection{SectionID: badSection, Content: fmt.Sprintf("read: %s\nwrite: %s\nconnect: %s",
		attemptOutcome(string(data), readErr), attemptOutcome("written", writeErr), attemptOutcome("connected", connectErr))})
}

// attemptOutcome is what came of an attempt, in one line.
func attemptOutcome(result string, err error) string {
	var number syscall.Errno
	switch {
	case err == nil:
		return result
	case errors.As(err, &number):
		return "refused: " + number.Error()
	}
	return "failed: " + err.Error()
}
