package bench

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
	"github.com/grapnelhq/grapnel/sdk/serve"
)

// The plugins of the benchmarks, by their argument: none is the good one.
const (
	// hangMode is one that hangs where it is asked to, says its process id in another
	// phase, and does not end when it is told to.
	hangMode = "hang"
	// grpcMode is the good one without its lane.
	grpcMode = "grpc"
	// loopMode is one that comes up and crashes, again and again.
	loopMode = "loop"
)

// hangs begins the line by which a plugin tells that a call has reached it; its
// process id is behind it.
const hangs = "hangs "

// lifeOfLooper is how long a plugin lives that crashes again and again.
const lifeOfLooper = 5 * time.Millisecond

// servePlugin serves the plugin that the process is to be, and does not return.
func servePlugin() {
	mode := ""
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	switch mode {
	case hangMode:
		signal.Ignore(syscall.SIGTERM)
		if err := serve.Serve(hanger()); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
		}
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, os.Interrupt)
		<-ended // never: it takes a signal that nobody can ignore
	case grpcMode:
		_ = os.Unsetenv("GRAPNEL_LANE")
	case loopMode:
		serve.Main(looper())
	}
	serve.Main(echo())
}

// hanger hangs.
func hanger() *sdk.Plugin {
	return &sdk.Plugin{
		Name: "hanger", Version: "1.0.0",
		Hooks: []sdk.Hook{{
			Name: "hang", Kinds: []phases.Kind{phases.KindPromptSection},
			PrePromptCompile: func(_ context.Context, _ *sdk.Call, in *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
				if !in.ToolCalling {
					return nil, nil // an answer, so that its breaker closes
				}
				_, _ = fmt.Fprintf(os.Stderr, "%s%d\n", hangs, os.Getpid())
				select {}
			},
		}, {
			Name: "pid", Kinds: []phases.Kind{phases.KindPromptContext},
			PostPreflight: func(context.Context, *sdk.Call, *phases.PostPreflightInput) ([]phases.Contribution, error) {
				return sdk.Reply(&phases.PromptContext{Content: strconv.Itoa(os.Getpid())})
			},
		}},
	}
}

// looper crashes soon after it was configured. Nobody calls it.
func looper() *sdk.Plugin {
	return &sdk.Plugin{
		Name: "looper", Version: "1.0.0",
		OnConfigure: func(context.Context, *phases.Configuration) (sdk.Setup, error) {
			time.AfterFunc(lifeOfLooper, func() { os.Exit(3) })
			return sdk.Setup{}, nil
		},
		Hooks: []sdk.Hook{{
			Name: "never", Kinds: []phases.Kind{phases.KindPromptSection},
			PrePromptCompile: func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
				return nil, nil
			},
		}},
	}
}

// quantiles reports p50 and p99 of durations in milliseconds, and their number.
func quantiles(b *testing.B, prefix string, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	at := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Nanoseconds()) / 1e6 }
	b.ReportMetric(at(0.5), prefix+"p50-ms")
	b.ReportMetric(at(0.99), prefix+"p99-ms")
	b.ReportMetric(0, "ns/op") // the durations are of something else
}

func timedCall(b *testing.B, c call) time.Duration {
	b.Helper()
	begin := time.Now()
	if err := c(); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}
