package main

import (
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
	only := flag.String("run", "", "run only checks whose `NAME` matches this regular expression")
	parallel := flag.Int("parallel", 3, "run `N` checks at once")
	keep := flag.Bool("keep", false, "keep the homes of the checks")
	newest := flag.Bool("newest", false, "run the agents that the registry has now, instead of the pinned versions")
	check := flag.Bool("check", false, "leave out the checks of contracts, and without names of agents all but Claude Code and Codex")
	count := flag.Int("count", 1, "run each check `N` times")
	soak := flag.Int("soak", 0, "send `N` calls through grapnel-hook to gateways that start, are killed, restarted and reloaded, and count")
	transcripts := flag.String("transcripts", "", "write what the agents keep of conversations to `DIR`")
	compare := flag.Bool("contracts", false, "compare the events of the newest packages with those that are described, and write the list")
	flag.Parse()
	matches, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	l, err := newLab(ctx)
	if err != nil {
		return err
	}
	l.parallel, l.newest, l.contracts = *parallel, *newest, !*check || *only != ""
	if !*keep {
		defer os.RemoveAll(l.work) // it is in the cache
	}
	list := named(agents(), flag.Args())
	switch {
	case *compare:
		return l.compareContracts(ctx)
	case *transcripts != "":
		return l.writeTranscripts(ctx, named(append(agents(), copilot()), flag.Args()), *transcripts)
	case *soak > 0:
		return l.soak(ctx, *soak)
	case *check && flag.NArg() == 0:
		list = list[:2] // .ci/run has no time for the others
	}
	return l.runChecks(ctx, list, *count, matches)
}

// lab runs agents.
type lab struct {
	bin, cache, work string // of programs of ours, of agents, of runs
	root, self       string // of the repository; this program
	newest           bool   // agents are of the version that the registry has now, not of that which is pinned
	contracts        bool   // with the checks of hooks that are not ours
	parallel         int    // checks at once
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
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(root, ".cache", "hosts")
	l := &lab{bin: filepath.Join(dir, "bin"), cache: filepath.Join(user, "grapnel", "agents"), work: filepath.Join(dir, "run"), root: root, self: self}
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

// cannedMode is how this program is started as a hook.
const cannedMode = "canned"

// answerCanned is a hook that does what a file says.
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
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
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
