package config

import (
	"slices"
	"strings"
	"unicode"

	"github.com/grapnelhq/grapnel/phases"
)

// grants checks what a plugin is allowed. Which host services, sections and
// fields exist is not known here.
func (c *checker) grants(g *phases.Grants, n *node) {
	for _, list := range []struct {
		key     string
		entries []string
		problem func(entry string) string
	}{
		{"contribute", g.Contribute, kindProblem},
		{"sections", g.Sections, nameProblem},
		{"stable_sections", g.StableSections, nameProblem},
		{"join", g.Join, nameProblem},
		{"policies", g.Policies, policyProblem},
		{"domains", g.Domains, textProblem},
		{"tools", g.Tools, nameProblem},
		{"host", g.Host, nameProblem},
		{"see", g.See, nameProblem},
	} {
		items := n.child(list.key)
		for i, entry := range list.entries {
			at := items.item(i)
			if at.kind != textNode {
				continue // reported by the decoder
			}
			if problem := grantProblem(entry, list.problem); problem != "" {
				c.badf(at, "%s", problem)
			}
		}
	}
}

// grantProblem checks one entry: the wildcard first, then the list's own rule.
func grantProblem(entry string, rule func(string) string) string {
	if entry == "" {
		return "the grant is empty"
	}
	if i := strings.IndexByte(entry, '*'); i >= 0 && i < len(entry)-1 {
		return "* stands only at the end"
	}
	if entry == "*" {
		return ""
	}
	return rule(entry)
}

// textProblem refuses blanks and what cannot be seen.
func textProblem(entry string) string {
	if strings.ContainsFunc(entry, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return "a grant has no blanks or control characters"
	}
	return ""
}

// nameProblem wants the form of names, which may end in a wildcard.
func nameProblem(entry string) string {
	if !phases.ValidName(strings.TrimSuffix(entry, "*")) {
		return "a name has letters, digits and _ . : / -, beginning with a letter or digit"
	}
	return ""
}

// kindProblem wants a kind, or a wildcard that covers at least one.
func kindProblem(entry string) string {
	kinds := texts(phases.Kinds()...)
	if slices.ContainsFunc(kinds, func(kind string) bool { return phases.Allows([]string{entry}, kind) }) {
		return ""
	}
	return "unknown kind " + quote(entry) + hint(strings.TrimSuffix(entry, "*"), kinds)
}

// policyProblem wants DOMAIN/KEY. A bare word would never match anything, and is
// most likely meant as the whole domain.
func policyProblem(entry string) string {
	if problem := textProblem(entry); problem != "" {
		return problem
	}
	if domain, _, ok := strings.Cut(entry, "/"); (!ok && !strings.HasSuffix(entry, "*")) || ok && domain == "" {
		return quote(entry) + " is no policy; write DOMAIN/KEY, or DOMAIN/* for all of a domain"
	}
	return ""
}
