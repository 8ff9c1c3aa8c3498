package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/grapnelhq/grapnel/sdk/serve"
)

func main() {
	switch {
	case serve.StartedByHost():
		serve.Main(newPlugin())
	case len(os.Args) == 3 && os.Args[1] == cannedMode:
		answerCanned(os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == mcpMode:
		serveMCP(os.Stdin, os.Stdout)
	default:
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err := run(ctx)
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, "hosts:", err)
			os.Exit(1)
		}
	}
}

func run(ctx context.Context) error {
	asJSON := flag.Bool("json", false, "print results as JSON, one a line")
	only := flag.String("run", "", "run only probes whose `NAME` matches this regular expression")
	parallel := flag.Int("parallel", 3, "run `N` probes at once")
	keep := flag.Bool("keep", false, "keep the homes of the probes")
	newest := flag.Bool("newest", false, "run the agents that the registry has now, instead of the pinned versions")
	check := flag.Bool("check", false, "run the checks only, not the probes")
	count := flag.Int("count", 1, "run each check `N` times")
	soak := flag.Int("soak", 0, "send `N` calls through grapnel-hook to gateways that start, are killed, restarted and reloaded, and count")
	flag.Parse()
	matches, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	l, err := newLab(ctx)
	if err != nil {
		return err
	}
	l.parallel, l.newest = *parallel, *newest
	if *asJSON {
		l.out, l.outcome = lines[result](os.Stdout), lines[outcome](os.Stdout)
	}
	if !*keep {
		defer os.RemoveAll(l.work) // it is in the cache
	}
	list := named(agents(), flag.Args())
	if *soak > 0 {
		return l.soak(ctx, *soak)
	}
	if *check {
		if flag.NArg() == 0 {
			list = list[:2] // .ci/run has no time for the others
		}
		return l.runChecks(ctx, list, *count, matches)
	}
	for _, a := range list {
		if err := l.runAgent(ctx, &a, matches); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return errors.Join(l.out(nil), l.runChecks(ctx, list, *count, matches))
}

// named are the agents of these names; without names all.
func named(all []agent, names []string) []agent {
	return slices.DeleteFunc(all, func(a agent) bool { return len(names) > 0 && !slices.Contains(names, a.name) })
}

// newLab builds our programs, and finds the directories.
func newLab(ctx context.Context) (*lab, error) {
	root, err := checkout()
	if err != nil {
		return nil, err
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(root, ".cache", "hosts")
	l := &lab{bin: filepath.Join(dir, "bin"), cache: filepath.Join(user, "grapnel", "agents"), work: filepath.Join(dir, "run"), out: tableOf(os.Stdout), outcome: printOutcome}
	return l, errors.Join(os.RemoveAll(l.work), runCommand(ctx, root, "go", "build", "-o", l.bin+"/", "./cmd/grapnel", "./cmd/grapnel-hook"))
}

// checkout is the root of the repository that this program was started in.
func checkout() (string, error) {
	out, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return "", errors.New("run it inside a checkout of Grapnel")
	}
	return string(out[:len(out)-1]), nil
}

// runCommand runs a command and shows what it says if it fails.
func runCommand(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// tableOf returns a printer of results; nil is the end.
func tableOf(w io.Writer) func(*result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "host\tway\tevent\tprobe\tthe tool\tthe model got\tcontext\trequests\texit\ts\tthe user saw")
	return func(r *result) error {
		if r == nil {
			return t.Flush()
		}
		_, err := fmt.Fprintf(t, "%s %s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%.1f\t%s\n",
			r.Host, r.Version, r.Way, r.Event, r.Probe, r.Tool, cut(r.Model), r.Context, r.Requests, r.Exit, r.Seconds, cut(r.Shown))
		return err
	}
}

func lines[T any](w io.Writer) func(*T) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return func(r *T) error {
		if r == nil {
			return nil
		}
		return enc.Encode(r)
	}
}

func cut(s string) string {
	s = regexp.MustCompile(`\s+`).ReplaceAllString(s, " ")
	if r := []rune(s); len(r) > 120 {
		s = string(r[:119]) + "…"
	}
	return cmp.Or(s, "–")
}

// cannedMode is how this program is started as a hook.
const cannedMode = "canned"

// answerCanned is a hook that does what a file says, and keeps what it was given beside it.
func answerCanned(path string) {
	err := func() error {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var c canned
		if err := json.Unmarshal(data, &c); err != nil {
			return err
		}
		payload, err := io.ReadAll(os.Stdin)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path+".payload", payload, 0o600); err != nil {
			return err
		}
		time.Sleep(c.Sleep)
		if c.Crash {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if c.Exit != 0 {
			fmt.Fprintln(os.Stderr, because)
			os.Exit(c.Exit)
		}
		_, err = os.Stdout.WriteString(c.Answer)
		return err
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
