package config

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/phases"
)

func (c *checker) grants(g *phases.Grants, n *node) {
	for key, problem := range map[string]func(entry string) string{
		"contribute": kindProblem, "sections": nameProblem, "stable_sections": nameProblem, "join": nameProblem, "policies": policyProblem,
		"domains": textProblem, "tools": nameProblem, "host": nameProblem, "see": nameProblem, "read": pathProblem, "write": pathProblem,
	} {
		c.texts(n.child(key), func(entry string) string { return grantProblem(entry, problem) })
	}
	c.texts(n.child("net"), netProblem)
	for _, paths := range [][]string{g.Read, g.Write} {
		for i, path := range paths {
			if isRelative(path) {
				paths[i] = filepath.Join(c.dir, path)
			}
		}
	}
}

func (c *checker) texts(list *node, problem func(text string) string) {
	if list == nil {
		return
	}
	for _, item := range list.items {
		if item.kind != textNode {
			continue // reported by the decoder
		}
		if problem := problem(item.text); problem != "" {
			c.badf(item, "%s", problem)
		}
	}
}

func grantProblem(entry string, rule func(string) string) string {
	if entry == "" {
		return "the grant is empty"
	}
	if i := strings.IndexByte(entry, '*'); i >= 0 && i < len(entry)-1 {
		return "* can only stand at the end"
	}
	if entry == "*" {
		return ""
	}
	return rule(entry)
}

func textProblem(entry string) string {
	if strings.ContainsFunc(entry, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return "a grant has no blanks or control characters"
	}
	return ""
}

func nameProblem(entry string) string {
	if !phases.ValidName(strings.TrimSuffix(entry, "*")) {
		return "a name has letters, digits and _ . : / -, beginning with a letter or digit"
	}
	return ""
}

func kindProblem(entry string) string {
	kinds := texts(phases.Kinds()...)
	if slices.ContainsFunc(kinds, func(kind string) bool { return phases.Allows([]string{entry}, kind) }) {
		return ""
	}
	return "unknown kind " + quote(entry) + hint(strings.TrimSuffix(entry, "*"), kinds)
}

func policyProblem(entry string) string {
	if problem := textProblem(entry); problem != "" {
		return problem
	}
	if domain, _, ok := strings.Cut(entry, "/"); (!ok && !strings.HasSuffix(entry, "*")) || ok && domain == "" {
		return quote(entry) + " is not a policy; write DOMAIN/KEY, or DOMAIN/* for a whole domain"
	}
	return ""
}

// Tier returns the sandbox tier that a declaration asks for, "T0", "T1" or "T2", and the key that does: "sandbox", or
// one such as "grants.read" that names single places, which need T1.
func (p *Plugin) Tier() (tier, key string) {
	if p.Sandbox != "" && p.Sandbox != "T0" {
		return p.Sandbox, "sandbox"
	}
	for _, grant := range []struct {
		key     string
		entries []string
	}{{"grants.read", p.Grants.Read}, {"grants.write", p.Grants.Write}, {"grants.net", p.Grants.Net}} {
		if slices.ContainsFunc(grant.entries, func(entry string) bool { return entry != "*" }) {
			return "T1", grant.key
		}
	}
	return "T0", "sandbox"
}

// StoreFile returns the absolute path of an embedded store, "" for any other.
func (c *Config) StoreFile() string {
	path, embedded := strings.CutPrefix(c.Store.Value, "sqlite:")
	if !embedded || strings.HasPrefix(path, ":") {
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(c.origin().file), path)
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return path
}

// pathProblem accepts a file or a whole directory, which is what systems can
// separate. A bare word is more likely a name for another list than a file.
func pathProblem(entry string) string {
	if path, wild := strings.CutSuffix(entry, "*"); wild && !strings.HasSuffix(path, "/") {
		dir := cmp.Or(path[:strings.LastIndexByte(path, '/')+1], "./")
		return quote(entry) + " is neither a file nor a whole directory; write " + quote(dir+"*")
	}
	if filepath.IsAbs(entry) || isRelative(entry) {
		return ""
	}
	if entry[0] == '~' {
		return quote(entry) + " is not an absolute path: ~ is not expanded"
	}
	return quote(entry) + " is not an absolute path; write " + quote("./"+entry) + " for one beside this file"
}

func isRelative(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return first == "." || first == ".."
}

// netProblem accepts ports. Systems cannot separate machines.
func netProblem(entry string) string {
	if entry == "*" {
		return ""
	}
	const forms = `write "*:PORT" to connect, "listen:PORT" to listen, "*" for everything`
	i := strings.LastIndexByte(entry, ':')
	if i < 0 {
		if _, err := strconv.ParseUint(entry, 10, 16); err == nil {
			return quote(entry) + " lacks the direction; " + forms
		}
		return quote(entry) + " is not a network grant; " + forms
	}
	who, port := entry[:i], entry[i+1:]
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '0' {
		return quote(port) + " is not a port: a number between 1 and 65535"
	}
	if who == "*" || who == "listen" {
		return ""
	}
	if near := suggest.DidYouMean(who, []string{"listen"}); near != "" {
		return "unknown word " + quote(who) + near
	}
	return quote(entry) + " names a machine, but the sandbox only separates ports; " + quote("*:"+port) + " allows this port on every machine"
}
