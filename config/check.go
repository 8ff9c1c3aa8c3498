package config

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// checker finds mistakes that concern several keys, and fills in what follows
// from the whole file. The nodes are those that the values came from.
type checker struct {
	*decoder

	config *Config
	dir    string
	// allowUnpinned is that of the Loader.
	allowUnpinned bool
	// places says where each plugin's name stands.
	places map[string]*node
}

// check runs all checks. It works on whatever could be decoded: what is wrong in
// one place must not hide what is wrong in another, and a second message about
// the same place is dropped by the report.
func (c *checker) check(root *node) {
	// Names come first: the other checks ask which plugins there are.
	c.places = map[string]*node{}
	plugins := root.child("plugins")
	for i := range c.config.Plugins {
		c.name(&c.config.Plugins[i], plugins.item(i))
	}
	for i := range c.config.Plugins {
		c.plugin(&c.config.Plugins[i], plugins.item(i))
	}
	c.budgets(root.child("budgets").child("phases"))
	if store := root.child("store"); store != nil && !validStore(c.config.Store.Value) {
		c.badf(store, "a store is sqlite:PATH or postgres://…")
	}
	c.keys(root.child("manifest"))
	c.serve(root.child("serve"))
}

// keys refuses empty keys: who names a key, and whose environment has an empty
// variable, would have no key and think that there is one.
func (c *checker) keys(n *node) {
	for _, key := range []struct {
		name  string
		value Secret
	}{{"fingerprint_key", c.config.Manifest.FingerprintKey}, {"chain_key", c.config.Manifest.ChainKey}} {
		if at := n.child(key.name); at != nil && key.value.Value == "" {
			c.badf(at, "the key is empty; leave %s away to have none", key.name)
		}
	}
}

// validStore reports whether a DSN has a form that package store knows. The DSN
// itself is in no message: it may hold a password.
func validStore(dsn string) bool {
	for _, prefix := range []string{"sqlite:", "postgres://", "postgresql://"} {
		if strings.HasPrefix(dsn, prefix) && len(dsn) > len(prefix) {
			return true
		}
	}
	return false
}

// budgets checks the bounds of phases.
func (c *checker) budgets(n *node) {
	table := phases.Standard()
	for _, key := range n.keys() {
		at := n.child(key)
		if row, ok := table.Lookup(phases.Phase(key)); ok && row.Queue && at.child("time") != nil {
			c.badKeyf(at.child("time"), "%s runs in the background and has no time budget", key)
		}
		for i, id := range c.config.Budgets.Phases[phases.Phase(key)].Require {
			c.required(at.child("require").item(i), id)
		}
	}
}

// required checks the id of a subscription that must have completed. One of a
// plugin that is not in the file could never complete, and the phase would fail
// in every turn.
func (c *checker) required(n *node, id string) {
	plugin, hook, ok := strings.Cut(id, ".")
	if !ok || !phases.ValidPluginName(plugin) || !phases.ValidName(hook) {
		c.badf(n, "%.80q is no subscription id; it is PLUGIN.HOOK", id)
		return
	}
	var names []string
	for i := range c.config.Plugins {
		names = append(names, c.config.Plugins[i].Name)
	}
	if !slices.Contains(names, plugin) {
		c.badf(n, "%.80q is required, and there is no plugin %.80q%s", id, plugin, didYouMean(plugin, names))
	}
}

// name checks that a plugin's name is valid and its own.
func (c *checker) name(p *Plugin, n *node) {
	at := n.child("name")
	if at == nil || p.Name == "" && at.kind != textNode {
		return // reported by the decoder
	}
	if !phases.ValidPluginName(p.Name) {
		c.badf(at, "%.80q cannot name a plugin: use letters, digits, _ and -, beginning with a letter or digit", p.Name)
		return
	}
	if phases.ReservedOwner(p.Name) {
		c.badf(at, "no plugin can be called %q: manifests mean the owner of that name by it", p.Name)
		return
	}
	if first := c.places[p.Name]; first != nil {
		c.badf(at, "plugin %q is configured twice, first at %s:%d:%d", p.Name, c.file, first.line, first.column)
		return
	}
	c.places[p.Name] = at
}

// plugin checks one declaration.
func (c *checker) plugin(p *Plugin, n *node) {
	if n == nil || n.kind != mappingNode {
		return
	}
	c.program(p, n)
	c.checksums(p, n)
	c.grants(&p.Grants, n.child("grants"))
	c.sandboxed(p, n)
	c.environment(&p.Env, n.child("env"))
	c.subscriptions(p, n.child("subscriptions"))
	if own := n.child("config"); own != nil && p.Config != nil {
		p.hide(own)
	}
}

// program checks how the plugin is started, and finds its command.
func (c *checker) program(p *Plugin, n *node) {
	builtin, command := n.child("builtin"), n.child("command")
	if builtin != nil && command != nil {
		c.badKeyf(command, "a plugin is builtin or has a command, not both")
		return
	}
	if builtin != nil && builtin.kind == textNode && p.Builtin == "" {
		c.badf(builtin, "the name is empty")
	}
	if command == nil {
		for _, key := range commandKeys() {
			if at := n.child(key); at != nil {
				c.badKeyf(at, "%s goes with a command, and this plugin has none", key)
			}
		}
		return
	}
	if p.Command == "" {
		if command.kind == textNode {
			c.badf(command, "the command is empty")
		}
		return
	}
	// That nothing is there is found at the start: it is this plugin's failure,
	// and no reason to run no plugin at all.
	p.Path, _ = ResolveCommand(c.dir, p.Command, c.lookup)
}

// commandKeys are the keys that say something about a command.
func commandKeys() []string { return []string{"args", "sha256", "pins", "unsafe_path"} }

// checksums checks the form of checksums, and that there is one if the file says
// so.
func (c *checker) checksums(p *Plugin, n *node) {
	hex := regexp.MustCompile(hexPattern)
	const form = "a SHA-256 checksum has 64 hex digits"
	if at := n.child("sha256"); at != nil && at.kind == textNode && !hex.MatchString(p.SHA256) {
		c.badf(at, form)
	}
	p.SHA256 = strings.ToLower(p.SHA256)
	pins := n.child("pins")
	for _, path := range pins.keys() {
		at := pins.child(path)
		if !filepath.IsAbs(path) {
			c.badKeyf(at, "%.80q is not an absolute path", path)
		}
		if at.kind == textNode && !hex.MatchString(at.text) {
			c.badf(at, form)
		} else {
			p.Pins[path] = strings.ToLower(p.Pins[path])
		}
	}
	if command := n.child("command"); c.config.Pin != "" && command != nil && n.child("sha256") == nil && !c.allowUnpinned {
		c.badf(command, "checksums are required (pin), and this command has none; \"grapnel plugin pin\" writes sha256")
	}
}

// environment checks the names of variables.
func (c *checker) environment(env *Env, n *node) {
	set := n.child("set")
	for _, name := range set.keys() {
		if !validVariable(name) {
			c.badKeyf(set.child(name), "%.80q cannot name a variable", name)
		}
	}
	pass := n.child("pass")
	for i, name := range env.Pass {
		at := pass.item(i)
		if at.kind != textNode {
			continue
		}
		if !validVariable(name) {
			c.badf(at, "%.80q cannot name a variable", name)
		} else if set.child(name) != nil {
			c.badf(at, "%.80q is both passed and set", name)
		}
	}
}

// validVariable is generous: some systems have variables with brackets in their
// names.
func validVariable(name string) bool { return name != "" && !strings.ContainsAny(name, "= \t\n\x00") }

// subscriptions checks overrides as far as one file can tell. Whether a phase
// takes a role, a condition compiles or a fallback is needed depends on what the
// plugin proposes; the planner checks it and reports it through PlanError.
func (c *checker) subscriptions(p *Plugin, n *node) {
	for _, id := range n.keys() {
		at := n.child(id)
		hook, own := strings.CutPrefix(id, p.Name+".")
		switch {
		case p.Name == "":
			continue
		case !own:
			c.badKeyf(at, "%.80q is no subscription of this plugin; its ids begin with %q", id, p.Name+".")
		case !phases.ValidName(hook):
			c.badKeyf(at, "%.80q cannot name a hook: use letters, digits and _ . : / -", hook)
		}
		o := p.Subscriptions[id]
		if o.OnFailure != nil && o.OnFailure.Uses(phases.FailClosed) && at.child("phase") == nil && p.Command != "" {
			c.badKeyf(at.child("on_failure"), "fail_closed needs the phase here: if %q never comes up, nothing else says which phase must fail", p.Name)
		}
		for _, key := range []string{"after", "before"} {
			c.order(at.child(key))
		}
	}
}

// order checks a list of dependencies. A "?" at the end makes one soft.
func (c *checker) order(n *node) {
	if n == nil {
		return
	}
	for _, item := range n.items {
		plugin, hook, ok := strings.Cut(strings.TrimSuffix(item.text, "?"), ".")
		if item.kind == textNode && (!ok || !phases.ValidPluginName(plugin) || !phases.ValidName(hook)) {
			c.badf(item, "%.80q is no subscription id; it is PLUGIN.HOOK", item.text)
		}
	}
}
