package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/install"
	"github.com/grapnelhq/grapnel/internal/agents/pluginfile"
	"github.com/grapnelhq/grapnel/internal/cli/autostart"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

type uninstallFlags struct {
	Scope  string `default:"user" flag:"scope"                                      suggest:"user|project|local" usage:"{SCOPE}: user, project (a file to be committed) or local (a file of yours in the project)"`
	DryRun bool   `flag:"dry-run" usage:"say what would change, and change nothing"`
	Diff   bool   `flag:"diff"    usage:"show the changes of each file too"`
}

type installFlags struct {
	uninstallFlags

	HTTP      bool   `flag:"http"     usage:"have the agent call the running gateway's address (claude-code); no process is started for an event then"`
	Partial   bool   `flag:"partial"  usage:"install although the agent has no place for the tools of plugins"`
	Mod       bool   `flag:"mod"      usage:"add a mod, which no other mod of the agent outvotes, and which records what is sent (claude-code)"`
	OnFailure string `default:"block" flag:"on-failure"                                                                                                usage:"what happens to prompts and calls that nobody judged, because the gateway failed: block or allow" words:"block|allow"`
}

// hookInstall is the result of install and uninstall.
type hookInstall struct {
	Host    string          `json:"host"`
	Scope   agent.Scope     `json:"scope"`
	Files   []installedFile `json:"files"`
	Changed bool            `json:"changed" jsonschema:"a file was changed, or would be"`
	DryRun  bool            `json:"dry_run" jsonschema:"nothing was written"`
	Events  []string        `json:"events"  jsonschema:"the agent's events that reach Grapnel now"`
	MCP     bool            `json:"mcp"     jsonschema:"the agent has the gateway's MCP server, with the tools of plugins, now"`
	Mod     bool            `json:"mod"     jsonschema:"the agent has Grapnel's mod now"`
	Todo    []string        `json:"todo"    jsonschema:"what only a person can do, and what to know"`

	host  *install.Host
	files []*hookFile
	diff  bool // it is shown to people
}

type installedFile struct {
	File    string `json:"file"    jsonschema:"a file of the agent's"`
	Changed bool   `json:"changed" jsonschema:"it was changed, or would be"`
	Diff    string `json:"diff"    jsonschema:"what changes in it, as a unified diff"`
}

func completeHosts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return agents.Names(), cobra.ShellCompDirectiveNoFileComp
}

func (a *app) install(ctx context.Context, f *installFlags, args []string) error {
	name := args[0]
	result, err := f.target(name)
	if err != nil {
		return err
	}
	host := result.host
	if host.Plugin != "" && (f.HTTP || f.OnFailure == "allow") {
		return usagef("%s loads a plugin, which calls the gateway's socket and refuses what nobody judged; install it without --http and --on-failure", name)
	}
	if result.Mod = f.Mod; f.Mod && (host.Install.Mod == nil || result.Scope != agent.User || f.HTTP || f.OnFailure == "allow") {
		return usagef("--mod: only claude-code has a mod, in the scope user; it calls the gateway's socket and refuses what nobody judged, so give neither --http nor --on-failure")
	}
	need, err := a.neededEvents(ctx, host)
	if err != nil {
		return err
	}
	call, err := hookCommand(host, f, need.from)
	if err != nil {
		return err
	}
	if call.Timeout = hookTime(need.cfg); call.Timeout > 0 {
		result.Todo = append(result.Todo, fmt.Sprintf("the configuration gives a phase so much time that hooks wait up to %s: an agent that ends them sooner may allow what nobody judged", call.Timeout))
	}
	if f.HTTP {
		if need.events, err = result.overHTTP(host, call, need.events, need.cfg); err != nil {
			return err
		}
	} else if len(need.cfg.Serve.Roots) > 0 {
		result.Todo = append(result.Todo, "the gateway takes directories below serve.roots only, and an agent elsewhere is blocked: "+strings.Join(need.cfg.Serve.Roots, ", "))
	}
	if len(need.events) == 0 {
		result.Todo = []string{"no plugin of " + need.from.name() + " subscribes to anything that " + name + " has an event for; add one, and install again"}
	}
	wanted, err := result.wanted(f, call, need)
	if err != nil {
		return err
	}
	if err := result.apply(wanted); err != nil {
		return err
	}
	result.Events = append(result.Events, need.events...)
	if err := result.notes(f, call, need); err != nil {
		return err
	}
	return a.printInstall(result)
}

// notes adds what to know after an installation.
func (r *hookInstall) notes(f *installFlags, call *agent.Command, need *needed) error {
	if n := hookGateway(call); n != nil && !f.HTTP {
		r.Todo = append(r.Todo, "a gateway runs already; if its configuration has changed since: grapnel config reload --socket "+n.Socket)
	}
	if len(need.events) > 0 {
		r.Todo = append(r.Todo, r.host.Install.Notes...)
	}
	for _, row := range aboveHere(r.host.Agent) {
		r.Todo = append(r.Todo, printable(fmt.Sprintf("above Grapnel's hooks: %s %s (%s) can %s", row.Kind, row.ID, row.Path, cmp.Or(strings.Join(row.Can, ", "), "change nothing"))))
	}
	switch {
	case r.host.Plugin != "" && len(need.events) > 0:
		keep, err := keepGateway(need.from)
		if err != nil {
			return err
		}
		r.Todo = append(r.Todo, "the plugin starts no gateway, and refuses calls and prompts while none answers; keep one with: "+keep)
	case r.Scope == agent.Project && r.host.Plugin == "":
		r.Todo = append(r.Todo, "the file names "+call.Program+": whoever else uses it needs the program there")
	}
	return nil
}

// wanted is what the agent is to have: hooks for events or a plugin, and the MCP server if some plugin offers tools.
func (r *hookInstall) wanted(f *installFlags, call *agent.Command, need *needed) (*install.Wanted, error) {
	w := &install.Wanted{}
	switch {
	case r.host.Plugin == "":
		w.Entries = r.host.Entries(call, need.events)
	case len(need.events) > 0:
		w.Files = map[string][]byte{"": pluginfile.File(r.host.Agent, call.Socket)}
	}
	if r.Mod {
		w.Files = r.host.Install.Mod(call, r.host.Agent)
	}
	if len(need.tools) == 0 || r.Mod { // which registers them itself
		return w, nil
	}
	program, err := findProgram("grapnel")
	if err != nil {
		return nil, err
	}
	args := []string{"mcp"}
	if socket, err := autostart.Socket(); call.Socket != "" || err == nil && call.URL == "" {
		args = append(args, "--socket", cmp.Or(call.Socket, socket))
	} else {
		args = append(args, "--url", call.URL)
	}
	if call.Config != "" {
		args = append(args, "--config", call.Config)
	}
	why := fmt.Sprintf("%s has no file for MCP servers in the scope %s, and these plugins offer tools (tool_bundle): %s; add this server to it yourself: %s %s",
		r.Host, r.Scope, strings.Join(need.tools, ", "), program, strings.Join(args, " "))
	dir, _ := os.Getwd() // without one no project has a server
	switch r.MCP = r.host.HasServers(r.Scope); {
	case r.MCP:
		w.Server = r.host.Server(program, args, os.Getenv)
		if r.host.Plugin != "" {
			w.Files = map[string][]byte{"": pluginfile.File(r.host.Agent, call.Socket, append([]string{program}, args...)...)}
		}
	case hasTools(&agent.Event{Host: r.Host, Dir: dir}):
	case f.Partial:
		r.Todo = append(r.Todo, why)
	default:
		return nil, usagef("%s, and give --partial; or take tool_bundle out of grants.contribute", why)
	}
	return w, nil
}

// apply plans the changes of all files before it writes one.
func (r *hookInstall) apply(w *install.Wanted) error {
	for _, f := range r.files {
		if err := f.install(w); err != nil {
			return err
		}
	}
	if r.DryRun {
		return nil
	}
	for _, f := range r.files {
		if err := f.mayReplace(); err != nil {
			return err
		}
	}
	for _, f := range r.files {
		if err := f.write(); err != nil {
			return err
		}
	}
	removeDirs(r.files)
	return nil
}

func (a *app) uninstall(_ context.Context, f *uninstallFlags, args []string) error {
	from, err := a.configOrigin()
	if err != nil {
		return err
	}
	result, err := f.target(args[0])
	if err != nil {
		return err
	}
	if err := result.apply(&install.Wanted{}); err != nil {
		return err
	}
	for _, file := range result.files {
		if file.place.Whole && len(file.after) > 0 {
			result.Todo = append(result.Todo, file.path+" is not what install wrote, or was changed since, and stays: remove it yourself")
		}
	}
	if socket, _, err := hookPlace(from); err == nil {
		if n := hookGateway(&agent.Command{Socket: socket}); n != nil {
			result.Todo = append(result.Todo, fmt.Sprintf("the gateway at %s still runs, for whatever else calls it; if nothing does, end it with: kill %d", socket, n.PID))
		}
	}
	return a.printInstall(result)
}

func (a *app) printInstall(r *hookInstall) error {
	for _, f := range r.files {
		if f.place.Whole && f.data == nil && f.after == nil && r.host.Plugin == "" {
			continue // there is no mod
		}
		row := installedFile{File: f.path, Changed: f.changed()}
		if row.Changed {
			row.Diff = udiff.Unified(f.path, f.path, string(f.data), string(f.after))
			r.Changed = true
		}
		r.Files = append(r.Files, row)
	}
	return a.print(r, func() {
		for _, f := range r.Files {
			switch lines := "\n" + f.Diff; {
			case f.Changed:
				a.printf("%s%s %s: %s, %d removed\n", words.If(r.diff, f.Diff), words.If(r.DryRun, "would change")+words.If(!r.DryRun, "changed"), f.File,
					words.Count(strings.Count(lines, "\n+")-1, "line added", "lines added"), strings.Count(lines, "\n-")-1)
			case len(r.Events) == 0 && !r.MCP && !r.Mod:
				a.println("nothing of Grapnel's is in", f.File)
			default:
				a.println("nothing to change in", f.File)
			}
		}
		if r.Changed {
			a.printf("%s %s: %s%s\n", r.Host, words.If(r.DryRun, "would have")+words.If(!r.DryRun, "has"), hooksOf(r.Events), words.If(r.MCP, ", and the MCP server grapnel")+words.If(r.Mod, ", and the mod grapnel"))
		}
		for _, what := range r.Todo {
			a.println("note:", what)
		}
	})
}

func hooksOf(events []string) string {
	if len(events) == 0 {
		return "no hooks of Grapnel's"
	}
	return "hooks for " + strings.Join(events, ", ")
}

// target finds a host and its files.
func (f *uninstallFlags) target(name string) (*hookInstall, error) {
	host, err := hookHost(name)
	if err != nil {
		return nil, err
	}
	scope := agent.Scope(f.Scope)
	if err := hasScope(host, scope); err != nil {
		return nil, err
	}
	r := &hookInstall{Host: name, Scope: scope, Files: []installedFile{}, DryRun: f.DryRun, Events: []string{}, Todo: []string{}, host: host, diff: f.Diff}
	places, err := hookPlaces(host, scope)
	for _, place := range places {
		if scope != agent.User {
			if err = staysInProject(filepath.FromSlash(place.Path)); err != nil {
				break
			}
		}
		var file *hookFile
		if file, err = openHookFile(place, scope); err != nil {
			break
		}
		r.files = append(r.files, file)
	}
	return r, err
}

func hasScope(h *install.Host, s agent.Scope) error {
	switch scopes := h.Scopes(); {
	case slices.Contains(scopes, s):
		return nil
	case len(scopes) == 1:
		return usagef("%s has no hooks in the scope %s; give --scope %s", h.Name, s, scopes[0])
	default:
		return usagef("--scope %q: %s has %s", s, h.Name, joined(scopes))
	}
}

func hookHost(name string) (*install.Host, error) {
	if host := install.Lookup(name); host != nil {
		return host, nil
	}
	return nil, usagef("there is no host %q%s; the hosts are %s", name, suggest.DidYouMean(name, agents.Names()), strings.Join(agents.Names(), ", "))
}

// hookPlaces are the files of a scope; those of a project are below the working directory, where agents look for them.
func hookPlaces(h *install.Host, s agent.Scope) ([]install.Place, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, usagef("there is no home directory to look in: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, unable(err)
	}
	return h.Places(s, filepath.ToSlash(home), filepath.ToSlash(dir), os.Getenv), nil
}

// needed is what the plugins of a configuration need of an agent.
type needed struct {
	events []string
	tools  []string // the plugins that offer some
	cfg    *config.Config
	from   origin
}

// offerTools are the plugins that may bring tools and have a hook where they are brought.
func offerTools(cfg *config.Config, plan runtime.PlanView) (names []string) {
	for _, ph := range plan.Phases {
		for _, stage := range ph.Stages {
			for _, sub := range slices.Concat(stage.Layers...) {
				if i := slices.IndexFunc(cfg.Plugins, func(p config.Plugin) bool { return p.Name == sub.Plugin }); i >= 0 && phases.Allows(cfg.Plugins[i].Grants.Contribute, string(phases.KindToolBundle)) {
					names = append(names, sub.Plugin)
				}
			}
		}
	}
	return names
}

// neededEvents asks the plugins of the configuration that the gateway will have what they subscribe to.
func (a *app) neededEvents(ctx context.Context, h *install.Host) (*needed, error) {
	n := &needed{}
	var err error
	if n.cfg, n.from, err = a.serveConfig(); err != nil {
		return nil, err
	}
	subscribed := map[string]bool{}
	err = a.withEngine(ctx, n.cfg, runtime.Options{}, func(_ context.Context, eng *runtime.Engine) error {
		for _, row := range eng.Plugins() {
			if row.State != phases.PluginReady {
				return unable(fmt.Errorf("the plugin %s did not start, so its subscriptions are unknown; see: grapnel plugin list", row.Plugin))
			}
		}
		for _, ph := range eng.Plan("").Phases {
			subscribed[string(ph.Phase)] = len(ph.Stages) > 0
		}
		n.tools = offerTools(n.cfg, eng.Plan(phases.PreTools))
		return nil
	})
	if n.cfg.Manifest.KeepInputs == "calls" {
		for _, kept := range []phases.Phase{phases.PrePolicy, phases.ToolPreCall, phases.ToolPostCall} {
			subscribed[string(kept)] = true
		}
	}
	n.events = h.WantedEvents(func(phase string) bool { return subscribed[phase] })
	return n, err
}

// hookCommand is how the agent calls grapnel-hook.
func hookCommand(h *install.Host, f *installFlags, from origin) (*agent.Command, error) {
	program, err := findProgram(agent.Program)
	if err != nil {
		return nil, err
	}
	if goruntime.GOOS == "windows" && h.Name != "claude-code" {
		return nil, unable(fmt.Errorf("%s runs hooks through a shell, and Grapnel cannot quote for the shell of Windows; it can install only claude-code", h.Name))
	}
	c := &agent.Command{Program: program}
	if f.OnFailure == "allow" {
		c.OnFailure = "allow"
	}
	socket, config, err := hookPlace(from)
	if err != nil {
		return nil, err
	}
	if config == "" && from.Path != "" {
		config = from.Path
	}
	// Both are named even if they are the usual ones: a project can set variables for the agent's hooks.
	c.Socket, c.Config = socket, config
	if f.HTTP {
		return c, nil
	}
	return c, checkSocket(socket)
}

// hookTime returns how long hooks must wait for the start of the gateway and the phases of a configuration; 0 if their own
// default is enough.
func hookTime(cfg *config.Config) time.Duration {
	const byItself, start = 25 * time.Second, 15 * time.Second // the gateway, then its plugins: about eight seconds each at most
	longest := cfg.Budgets.Turn.Time.D()
	for _, b := range cfg.Budgets.Phases {
		longest = max(longest, b.Time.D())
	}
	if longest += start; longest <= byItself {
		return 0
	}
	return longest
}

// checkSocket refuses a path where no gateway could listen: nobody would read the errors of one that hooks start.
func checkSocket(socket string) error {
	if err := checkListen(&serveFlags{Socket: socket}); err != nil {
		return usagef("the gateway would have no socket: %w; $XDG_RUNTIME_DIR may name a directory with a shorter path", err)
	}
	return nil
}

// hookPlace is the socket of the gateway that agents have for a configuration, and the file of that, if it is not the
// user's. A configuration that somebody has named gets a gateway of its own: the agent may run without the variable, and
// another gateway may listen at the usual socket.
func hookPlace(from origin) (socket, config string, err error) {
	if socket, err = autostart.Socket(); err != nil {
		return "", "", usagef("%w", err)
	}
	if from.Path != "" && from.Why != userConfig {
		if config, err = filepath.Abs(from.Path); err != nil {
			return "", "", unable(err)
		}
		socket = filepath.Join(filepath.Dir(socket), "hook-"+sum([]byte(config))[:8]+".sock")
	}
	return socket, config, nil
}

// keepGateway is the command that starts the gateway of a configuration where agents look for it.
func keepGateway(from origin) (string, error) {
	socket, config, err := hookPlace(from)
	if config != "" {
		config = " --config " + config
	}
	return "grapnel serve --socket " + socket + config, err
}

// hookGateway is the gateway that the hooks will find; nil if none runs.
func hookGateway(c *agent.Command) *note {
	list, err := readNotes()
	usual, noPlace := autostart.Socket()
	if err = errors.Join(err, noPlace); err != nil {
		return nil
	}
	i := slices.IndexFunc(list, func(n note) bool { return n.Socket == cmp.Or(c.Socket, usual) && n.lives() })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// findProgram finds a program of ours beside this one, or in the PATH. Of one file it prefers the name in the PATH, which
// stays when a package manager puts a new version elsewhere: agents ask again about definitions that have changed.
func findProgram(name string) (string, error) {
	named, err := exec.LookPath(name)
	if err == nil {
		named, err = filepath.Abs(named)
	}
	self, err2 := os.Executable()
	if err2 == nil {
		beside := filepath.Join(filepath.Dir(self), name+words.If(goruntime.GOOS == "windows", ".exe"))
		if info, err2 := os.Stat(beside); err2 == nil && info.Mode().IsRegular() {
			if other, err2 := os.Stat(named); err != nil || err2 != nil || !os.SameFile(info, other) {
				return beside, nil //nolint:nilerr // none in the PATH is no failure then
			}
		}
	}
	if err != nil {
		return "", unable(fmt.Errorf("%s is neither beside this program nor in the PATH; build it: go install github.com/grapnelhq/grapnel/cmd/%s@latest", name, name))
	}
	return named, nil
}

// overHTTP has the agent call the gateway's address for the events that it can call a server for.
func (r *hookInstall) overHTTP(h *install.Host, c *agent.Command, events []string, cfg *config.Config) ([]string, error) {
	if !h.ByHTTP("") {
		return nil, usagef("--http: %s calls no server; install it without", h.Name)
	}
	n, err := httpGateway()
	if err != nil {
		return nil, err
	}
	c.URL, c.Socket, c.Config, c.NoStart = n.URL, n.Socket, "", true
	if n.Socket == "" {
		events = slices.DeleteFunc(events, func(e string) bool {
			if !h.ByHTTP(e) {
				r.Todo = append(r.Todo, e+" is omitted: the agent takes no HTTP for it, and the gateway has no socket (grapnel serve --listen ADDRESS --socket PATH)")
			}
			return !h.ByHTTP(e)
		})
	}
	token := "if the gateway wants a token, set " + tokenVariable + " where the agent is started"
	if n.SecretFile != "" {
		token = "set the token where the agent is started: export " + tokenVariable + "=\"$(cat '" + n.SecretFile + "')\""
	}
	r.Todo = append(r.Todo, token, "nothing starts this gateway by itself: keep one at "+n.URL+" (grapnel serve --listen "+strings.TrimPrefix(n.URL, "http://")+")")
	if len(cfg.Serve.Roots) == 0 {
		r.Todo = append(r.Todo, "a gateway with an address takes directories below serve.roots only, and the configuration has none: every prompt would be blocked until you add them")
	}
	return events, nil
}

func httpGateway() (*note, error) {
	list, err := readNotes()
	if err != nil {
		return nil, unable(err)
	}
	list = slices.DeleteFunc(list, func(n note) bool { return n.URL == "" || !n.lives() })
	if len(list) == 0 {
		return nil, unable(errors.New("--http: no gateway of yours listens at an address; start one with a fixed address: grapnel serve --listen 127.0.0.1:7433"))
	}
	return onlyNote(list)
}
