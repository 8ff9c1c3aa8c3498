package config

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Tier returns the sandbox tier that a declaration asks for, "T0", "T1" or "T2",
// and the key that does: "sandbox", or one such as "grants.read" where single
// places are granted, which T0 cannot tell apart. A declaration that says T0 and
// grants single places asks for both; [Load] refuses it.
func (p *Plugin) Tier() (tier, key string) {
	tier, key = "T0", "sandbox"
	if p.Sandbox != "" {
		tier = p.Sandbox
	}
	if tier != "T0" {
		return tier, key
	}
	for _, grant := range []struct {
		key     string
		entries []string
	}{{"grants.read", p.Grants.Read}, {"grants.write", p.Grants.Write}, {"grants.net", p.Grants.Net}} {
		if slices.ContainsFunc(grant.entries, func(entry string) bool { return entry != "*" }) {
			return "T1", grant.key
		}
	}
	return tier, key
}

// StoreFile returns the path of an embedded store, a relative one from the file's folder;
// "" if the store is another one, or none.
func (c *Config) StoreFile() string {
	path, embedded := strings.CutPrefix(c.Store.Value, "sqlite:")
	if !embedded || strings.HasPrefix(path, ":") {
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(c.file()), path)
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return path
}

// sandboxed checks what the sandbox is told.
func (c *checker) sandboxed(p *Plugin, n *node) {
	grants := n.child("grants")
	c.paths(p.Grants.Read, grants.child("read"))
	c.paths(p.Grants.Write, grants.child("write"))
	for i, entry := range p.Grants.Net {
		at := grants.child("net").item(i)
		if problem := netProblem(entry); problem != "" && at.kind == textNode {
			c.badf(at, "%s", problem)
		}
	}
	if tier, key := p.Tier(); tier != "T0" && p.Sandbox == "T0" {
		c.badf(n.child("sandbox"), "T0 keeps a plugin from nothing, and %s names single places: write T1, leave sandbox away, or grant '*'", key)
	}
}

// paths checks those for the sandbox, and makes absolute those that are relative
// to the file's folder.
func (c *checker) paths(entries []string, n *node) {
	for i, entry := range entries {
		at := n.item(i)
		if at.kind != textNode {
			continue
		}
		if problem := grantProblem(entry, pathProblem); problem != "" {
			c.badf(at, "%s", problem)
		} else if isRelative(entry) {
			entries[i] = filepath.Join(c.dir, entry)
		}
	}
}

// pathProblem wants a file or a whole folder, which is what systems can keep
// apart. A bare word is more likely a name from another list than a file beside
// the configuration.
func pathProblem(entry string) string {
	if path, wild := strings.CutSuffix(entry, "*"); wild && !strings.HasSuffix(path, "/") {
		folder := path[:strings.LastIndexByte(path, '/')+1]
		if folder == "" {
			folder = "./"
		}
		return quote(entry) + " is no file and no whole folder; write " + quote(folder+"*")
	}
	if filepath.IsAbs(entry) || isRelative(entry) {
		return ""
	}
	if entry[0] == '~' {
		return quote(entry) + " is not an absolute path: nothing stands for the home folder here"
	}
	return quote(entry) + " is not an absolute path; write " + quote("./"+entry) + " for one beside this file"
}

// isRelative reports whether a path says itself that it is relative.
func isRelative(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return first == "." || first == ".."
}

// netProblem wants a port. The name of a machine would be weaker than it reads:
// systems can keep ports apart, and not machines.
func netProblem(entry string) string {
	if entry == "*" {
		return ""
	}
	const forms = `write "*:PORT" to connect, "listen:PORT" to listen, "*" for everything`
	// The last colon: an address of the sixth version holds others.
	i := strings.LastIndexByte(entry, ':')
	if i < 0 {
		if _, err := strconv.ParseUint(entry, 10, 16); err == nil {
			return quote(entry) + " does not say what for; " + forms
		}
		return quote(entry) + " is no grant of the network; " + forms
	}
	who, port := entry[:i], entry[i+1:]
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '0' {
		return quote(port) + " is no port: a number between 1 and 65535"
	}
	switch {
	case who == "*", who == "listen":
		return ""
	case didYouMean(who, []string{"listen"}) != "":
		return "unknown word " + quote(who) + didYouMean(who, []string{"listen"})
	}
	return quote(entry) + " names a machine, and the sandbox keeps apart ports only; " + quote("*:"+port) + " allows this port on every machine"
}
