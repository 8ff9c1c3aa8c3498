package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// Position returns where the value of a path of keys and list indexes stands, as
// in Position("plugins", "0", "name"). It is not ok for what is not in the file,
// and for a Config that was not read from one.
func (c *Config) Position(path ...string) (line, column int, ok bool) {
	if c.source == nil {
		return 0, 0, false
	}
	n, rest := c.source.root.walk(path)
	if len(rest) > 0 {
		return 0, 0, false
	}
	line, column = n.place()
	return line, column, true
}

// Errorf returns an [Error] at a value of the file: a path of keys and list
// indexes joined by dots, as in "plugins.0.builtin". What is not there is
// reported at the nearest value above it. %w wraps a cause.
func (c *Config) Errorf(path, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if c.source == nil {
		return &Error{Message: join(path, err.Error()), Err: err}
	}
	n, rest := c.source.root.walkDotted(path)
	return c.at(n, n == c.source.root, join(rest, err.Error()), err)
}

// ErrorAt returns an [Error] for a configuration that a plugin refused, at the
// place that its JSON pointer names, or at the nearest value above it.
func (c *Config) ErrorAt(plugin string, e *phases.ConfigError) error {
	message := fmt.Sprintf("plugin %q refuses its configuration: ", plugin)
	n := c.plugin(plugin)
	if n == nil {
		return &Error{File: c.file(), Message: message + e.Error(), Err: e}
	}
	own := n.child("config")
	if own == nil {
		return c.at(pluginPlace(n), false, message+e.Error(), e)
	}
	at, rest := own.walk(pointerWords(e.Pointer))
	for i, word := range rest {
		rest[i] = strings.NewReplacer("~", "~0", "/", "~1").Replace(word)
	}
	return c.at(at, false, message+join(strings.Join(rest, "/"), e.Message), e)
}

// PlanError returns an [Error] for what the planner found: field is a path below
// the plugin, "subscriptions.ID.FIELD", or below the whole file when plugin is
// "", as in "budgets.phases.PHASE.require". What is not in the file, because a
// plugin proposed it, is reported at the nearest value above it, at last at the
// plugin; a plugin that is not in the file at all has no place.
func (c *Config) PlanError(plugin, field, message string) error {
	if plugin == "" {
		return c.Errorf(field, "%s", message)
	}
	n := c.plugin(plugin)
	if n == nil {
		return &Error{File: c.file(), Message: fmt.Sprintf("plugin %q: %s", plugin, join(field, message))}
	}
	at, rest := n.walkDotted(field)
	if at == n {
		return c.at(pluginPlace(n), false, fmt.Sprintf("plugin %q: %s", plugin, join(rest, message)), nil)
	}
	return c.at(at, false, join(rest, message), nil)
}

// at makes an error at a node. The whole file has no place of its own.
func (c *Config) at(n *node, whole bool, message string, cause error) error {
	if whole {
		return &Error{File: c.file(), Message: message, Err: cause}
	}
	line, column := n.place()
	e := c.source.at(line, column, message)
	e.Err = cause
	return e
}

func (c *Config) file() string {
	if c.source == nil {
		return ""
	}
	return c.source.file
}

// plugin returns the node of a plugin, nil if it is not in the file.
func (c *Config) plugin(name string) *node {
	if c.source == nil {
		return nil
	}
	if list := c.source.root.child("plugins"); list != nil {
		for _, n := range list.items {
			if at := n.child("name"); at != nil && at.text == name {
				return n
			}
		}
	}
	return nil
}

// pluginPlace is where to point at for a plugin as a whole: its name.
func pluginPlace(n *node) *node { return n.child("name") }

// join puts what is left of a path before a message.
func join(path, message string) string {
	if path == "" {
		return message
	}
	return path + ": " + message
}

// pointerWords splits a JSON pointer (RFC 6901).
func pointerWords(pointer string) []string {
	if pointer == "" {
		return nil
	}
	words := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, word := range words {
		words[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(word)
	}
	return words
}

// quote quotes a word out of a file, shortened.
func quote(word string) string {
	if len(word) > maxShown {
		word = word[:maxShown]
	}
	return strconv.Quote(word)
}
