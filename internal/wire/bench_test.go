package wire

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// plainCall is what gRPC users would write: a unary call that sends back what
// it got.
func plainCall(_ any, _ context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // gRPC's signature
	in := new(wrapperspb.StringValue)
	if err := dec(in); err != nil {
		return nil, err
	}
	return wrapperspb.String(in.GetValue()), nil
}

// BenchmarkDispatch measures a dispatch with a payload of 1 KiB each way to
// another process, against a plain unary call of the same payload.
func BenchmarkDispatch(b *testing.B) {
	path, plugin := spawn(b)
	text := strings.Repeat("0123456789abcdef", 64)
	for _, callers := range []int{1, 64} {
		name := map[int]string{1: "callers=1", 64: "callers=64"}[callers]
		b.Run("unary/"+name, func(b *testing.B) {
			conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() {
				if err := conn.Close(); err != nil {
					b.Error(err)
				}
			})
			parallel(b, plugin, callers, func() error {
				out := new(wrapperspb.StringValue)
				return conn.Invoke(context.Background(), "/plain.Unary/Call", wrapperspb.String(text), out)
			})
		})
		b.Run("wire/"+name, func(b *testing.B) {
			s := open(b, dial(b, path, 0), HostOptions{})
			parallel(b, plugin, callers, func() error {
				_, _, err := s.Dispatch(context.Background(), textDispatch(text), nil)
				return err
			})
		})
	}
}

// parallel runs b.N calls from so many goroutines.
func parallel(b *testing.B, plugin *exec.Cmd, callers int, call func() error) {
	b.Helper()
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	before := cpuTime(b, os.Getpid()) + cpuTime(b, plugin.Process.Pid)
	b.ResetTimer()
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	used := cpuTime(b, os.Getpid()) + cpuTime(b, plugin.Process.Pid) - before
	b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-µs/op")
}

// cpuTime is what a process has used so far, in steps of 10 ms; 0 where the
// system does not say.
func cpuTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The fields behind the program's name, which stands in parentheses.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	ticks := 0
	for _, f := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
