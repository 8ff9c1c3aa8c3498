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
	flag.Parse()
	matches, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	root, err := checkout()
	if err != nil {
		return err
	}
	cache := filepath.Join(root, ".cache", "hosts")
	l := lab{bin: filepath.Join(cache, "bin"), npm: filepath.Join(cache, "npm"), work: filepath.Join(cache, "run"), parallel: *parallel, out: tableOf(os.Stdout)}
	if *asJSON {
		l.out = lines(os.Stdout)
	}
	if err := os.RemoveAll(l.work); err != nil {
		return err
	}
	if !*keep {
		defer os.RemoveAll(l.work) // it is in the cache
	}
	if err := command1(ctx, root, "go", "build", "-o", l.bin+"/", "./cmd/grapnel", "./cmd/grapnel-hook"); err != nil {
		return err
	}
	for _, a := range agents() {
		if flag.NArg() > 0 && !slices.Contains(flag.Args(), a.name) {
			continue
		}
		if err := l.runAgent(ctx, &a, matches); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return l.out(nil)
}

// checkout is the root of the repository that this program was started in.
func checkout() (string, error) {
	out, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return "", errors.New("run it inside a checkout of Grapnel")
	}
	return string(out[:len(out)-1]), nil
}

// command1 runs a command and shows what it says if it fails.
func command1(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// install gets an agent's package from the npm registry.
func (l *lab) install(ctx context.Context, a *agent) error {
	dir := filepath.Join(l.npm, a.name+"-"+a.version)
	a.program = filepath.Join(dir, "node_modules", ".bin", a.program)
	if _, err := os.Stat(a.program); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "getting %s@%s\n", a.pkg, a.version)
	return command1(ctx, dir, "npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--save-exact", a.pkg+"@"+a.version)
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

func lines(w io.Writer) func(*result) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return func(r *result) error {
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
