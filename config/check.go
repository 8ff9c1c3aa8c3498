package config

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/phases"
)

// checker finds mistakes that concern several keys, and fills in what follows
// from the whole file. The nodes are those of the values.
type checker struct {
	*decoder

	config        *Config
	dir           string
	allowUnpinned bool
	places        map[string]*node // of the plugins' names
}

// check runs all checks on whatever could be decoded, so that one mistake does not hide another.
func (c *checker) check(root *node) {
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

func (c *checker) keys(n *node) {
	for _, key := range []struct {
		name  string
		value Secret
	}{{"fingerprint_key", c.config.Manifest.FingerprintKey}, {"chain_key", c.config.Manifest.ChainKey}} {
		if at := n.child(key.name); at != nil && key.value.Value == "" {
			c.badf(at, "the key is empty; remove %s to have none", key.name)
		}
	}
}

// validStore reports whether package store knows the form of a DSN. No message has the
// DSN, which may hold a password.
func validStore(dsn string) bool {
	for _, prefix := range []string{"sqlite:", "postgres://", "postgresql://"} {
		if strings.HasPrefix(dsn, prefix) && len(dsn) > len(prefix) {
			return true
		}
	}
	return false
}

func (c *checker) budgets(n *node) {
	table := phases.Standard()
	for _, e := range n.pairs() {
		row, ok := table.Lookup(phases.Phase(e.key))
		if at := e.value.child("time"); ok && row.Queue && at != nil {
			c.badKeyf(at, "%s runs in the background and has no time budget", e.key)
		}
		c.texts(e.value.child("require"), c.requireProblem)
	}
}

// requireProblem checks the id of a subscription that must complete, so that its plugin must be in the file.
func (c *checker) requireProblem(id string) string {
	if problem := idProblem(id); problem != "" {
		return problem
	}
	plugin, _, _ := strings.Cut(id, ".")
	var names []string
	for i := range c.config.Plugins {
		names = append(names, c.config.Plugins[i].Name)
	}
	if slices.Contains(names, plugin) {
		return ""
	}
	return fmt.Sprintf("%.80q is required, but there is no plugin %.80q%s", id, plugin, suggest.DidYouMean(plugin, names))
}

func idProblem(id string) string {
	plugin, hook, ok := strings.Cut(id, ".")
	if ok && phases.ValidPluginName(plugin) && phases.ValidName(hook) {
		return ""
	}
	return fmt.Sprintf("%.80q is not a subscription id; write PLUGIN.HOOK", id)
}

func (c *checker) name(p *Plugin, n *node) {
	at := n.child("name")
	if at == nil || p.Name == "" && at.kind != textNode {
		return // reported by the decoder
	}
	if !phases.ValidPluginName(p.Name) {
		c.badf(at, "%.80q cannot name a plugin: use letters, digits, _ and -, beginning with a letter or digit", p.Name)
		return
	}
	if p.Name == phases.OwnerBuiltin || p.Name == phases.OwnerHost {
		c.badf(at, "a plugin cannot be called %q: manifests use that name for another owner", p.Name)
		return
	}
	if first := c.places[p.Name]; first != nil {
		c.badf(at, "plugin %q is configured twice, first at %s:%d:%d", p.Name, c.file, first.line, first.column)
		return
	}
	c.places[p.Name] = at
}

func (c *checker) plugin(p *Plugin, n *node) {
	if n == nil || n.kind != mappingNode {
		return
	}
	c.program(p, n)
	c.checksums(p, n)
	c.grants(&p.Grants, n.child("grants"))
	if tier, key := p.Tier(); tier != "T0" && p.Sandbox == "T0" {
		c.badf(n.child("sandbox"), "T0 confines nothing, and %s names single places: write T1, remove sandbox, or grant '*'", key)
	}
	c.environment(n.child("env"))
	c.subscriptions(p, n.child("subscriptions"))
	if own := n.child("config"); own != nil && p.Config != nil {
		p.redact(own)
	}
}

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
				c.badKeyf(at, "%s needs a command, and this plugin has none", key)
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
	if at := n.child("tls"); at != nil && p.TLS && p.Transport == TransportStdio {
		c.badKeyf(at, "tls is for the transport grpc: with stdio there is no connection that another program could take; remove it")
	}
	// A command that does not exist fails at the start, and only this plugin.
	p.Path, _ = ResolveCommand(c.dir, p.Command, c.lookup)
}

func commandKeys() []string { return []string{"args", "sha256", "pins", "transport", "unsafe_path"} }

func (c *checker) checksums(p *Plugin, n *node) {
	const form = "a SHA-256 checksum has 64 hex digits"
	if at := n.child("sha256"); at != nil && at.kind == textNode && !checksum().MatchString(p.SHA256) {
		c.badf(at, form)
	}
	p.SHA256 = strings.ToLower(p.SHA256)
	pins := n.child("pins")
	for _, e := range pins.pairs() {
		path, at := e.key, e.value
		if !filepath.IsAbs(path) {
			c.badKeyf(at, "%.80q is not an absolute path", path)
		}
		if at.kind == textNode && !checksum().MatchString(at.text) {
			c.badf(at, form)
		} else {
			p.Pins[path] = strings.ToLower(p.Pins[path])
		}
	}
	if command := n.child("command"); c.config.Pin != "" && command != nil && n.child("sha256") == nil && !c.allowUnpinned {
		c.badf(command, "checksums are required (pin), and this command has none; \"grapnel plugin pin\" writes sha256")
	}
}

func (c *checker) environment(n *node) {
	set := n.child("set")
	for _, e := range set.pairs() {
		if !validVariable(e.key) {
			c.badKeyf(e.value, "%.80q cannot name a variable", e.key)
		}
	}
	c.texts(n.child("pass"), func(name string) string {
		switch {
		case !validVariable(name):
			return fmt.Sprintf("%.80q cannot name a variable", name)
		case set.child(name) != nil:
			return fmt.Sprintf("%.80q is both passed and set", name)
		}
		return ""
	})
}

// validVariable is generous: some systems have brackets in names of variables.
func validVariable(name string) bool { return name != "" && !strings.ContainsAny(name, "= \t\n\x00") }

// subscriptions checks overrides as far as possible without the plugin's description; the planner checks the rest.
func (c *checker) subscriptions(p *Plugin, n *node) {
	for _, e := range n.pairs() {
		id, at := e.key, e.value
		hook, own := strings.CutPrefix(id, p.Name+".")
		switch {
		case p.Name == "":
			continue
		case !own:
			c.badKeyf(at, "%.80q is not a subscription of this plugin; its ids begin with %q", id, p.Name+".")
		case !phases.ValidName(hook):
			c.badKeyf(at, "%.80q cannot name a hook: use letters, digits and _ . : / -", hook)
		}
		o := p.Subscriptions[id]
		if o.OnFailure != nil && o.OnFailure.Uses(phases.FailClosed) && at.child("phase") == nil && p.Command != "" {
			c.badKeyf(at.child("on_failure"), "fail_closed needs the phase here: if %q does not start, nothing else names the phase that must fail", p.Name)
		}
		for _, key := range []string{"after", "before"} {
			// "?" makes it optional.
			c.texts(at.child(key), func(id string) string { return idProblem(strings.TrimSuffix(id, "?")) })
		}
	}
}

func (c *checker) serve(n *node) {
	c.texts(n.child("roots"), func(root string) string {
		if filepath.IsAbs(root) {
			return ""
		}
		return fmt.Sprintf("%.80q is not an absolute path", root)
	})
	c.texts(n.child("hosts"), func(host string) string {
		if host != "" && !strings.ContainsAny(host, "/:@ ") {
			return ""
		}
		return fmt.Sprintf("%.80q is not a host name; write it without scheme and port", host)
	})
	c.texts(n.child("origins"), func(origin string) string {
		if validOrigin(origin) {
			return ""
		}
		return fmt.Sprintf("%.80q is not an origin; write scheme and host, such as https://example.org", origin)
	})
	kept := &c.config.Serve.Conversations
	if context, reserve := cmp.Or(kept.ContextTokens, DefaultContextTokens), cmp.Or(kept.ReserveTokens, DefaultReserveTokens); reserve >= context {
		c.badf(n.child("conversations"), "a context of %d tokens has no room for a response of %d", context, reserve)
	}
}

func validOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.String() == u.Scheme+"://"+u.Host
}
