package settings

import (
	"path/filepath"
	"strings"

	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain/option"
)

// add lays a configuration over the settings.
func (s *Settings) add(c *Config) {
	o := &s.Options
	set(&s.Source, c.Source)
	setPointer(&s.Enabled, c.Enabled)
	set(&s.Subtasks, c.Subtasks)
	setPointer(&s.Watch, c.Watch)

	setList(&o.Names, c.Names)
	setList(&o.FallbackNames, c.FallbackNames)
	setList(&o.LocalNames, c.LocalNames)
	setList(&o.Markers, c.Markers)
	setList(&o.Exclude, c.Exclude)
	setPointer(&o.Imports, c.Imports)
	setPointer(&o.ChildHint, c.ChildHint)
	set(&o.Trust, c.Trust)
	set(&o.Untrusted, c.Untrusted)
	s.addPlaces(c)
	s.addBudget(c.Budget)
	s.addResolver(c.Resolver)
}

// addPlaces lays the paths over the settings.
func (s *Settings) addPlaces(c *Config) {
	o := &s.Options
	set(&o.Root, s.place(c.Root))
	set(&o.Managed, s.place(c.Managed))
	if c.Allow != nil {
		o.Allow = make([]string, 0, len(c.Allow))
		for _, path := range c.Allow {
			o.Allow = append(o.Allow, s.place(path))
		}
	}
	switch g := c.Global; {
	case g.Off:
		o.GlobalDir = ""
	case g.Path != "":
		path := s.place(g.Path)
		o.GlobalDir, o.GlobalNames = filepath.Dir(path), []string{filepath.Base(path)}
	}
}

// place replaces "~/" by the home folder. Where that is unknown the path stays,
// and is refused or not found later, with a diagnostic that shows it.
func (s *Settings) place(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok || s.Options.Home == "" {
		return path
	}
	return filepath.Join(s.Options.Home, rest)
}

// addBudget lays the limits over the settings.
func (s *Settings) addBudget(b Budget) {
	l := &s.Options.Budget
	setPointer(&l.File, b.File)
	setPointer(&l.Total, b.Total)
	setPointer(&l.Files, b.Files)
	setPointer(&l.Floor, b.Floor)
}

// addResolver lays the delivery of nested files over the settings. Switched on
// without a word, it is what the preset has, or else reminders.
func (s *Settings) addResolver(r Resolver) {
	to := &s.Options.Resolver
	if r.Enabled != nil && *r.Enabled && to.Delivery == option.DeliverOff {
		to.Delivery = option.DeliverReminder
	}
	set(&to.Delivery, r.Delivery)
	if r.Enabled != nil && !*r.Enabled {
		to.Delivery = option.DeliverOff
	}
	setPointer(&to.MaxFiles, r.MaxFiles)
	setPointer(&to.MaxFile, r.MaxFile)
	setPointer(&to.MaxEvent, r.MaxEvent)
	if to.Delivery != option.DeliverOff && to.ChangedWhen == option.ChangedNeverResolved {
		to.ChangedWhen = option.ChangedByHash
	}
}

// addCodelia lays what the tool's own configuration says over the settings.
func (s *Settings) addCodelia(c Codelia) {
	s.add(&Config{
		Enabled:  c.Enabled,
		Markers:  c.Root.Markers,
		Budget:   Budget{Total: c.Initial.MaxBytes, Files: c.Initial.MaxFiles},
		Resolver: Resolver{Enabled: c.Resolver.Enabled, MaxFiles: c.Resolver.MaxFilesPerResolve},
	})
	if root := c.Root.ProjectRootOverride; root != nil {
		set(&s.Options.Root, s.place(*root))
	}
}

// set takes a value that was said.
func set[T comparable](to *T, value T) {
	var nothing T
	if value != nothing {
		*to = value
	}
}

// setPointer is set where every value can be said.
func setPointer[T any](to, value *T) {
	if value != nil {
		*to = *value
	}
}

// setList is set for lists, of which an empty one says something.
func setList(to *[]string, list []string) {
	if list != nil {
		*to = append([]string{}, list...)
	}
}

// commaList splits, trims, and drops blanks. It is never nil.
func commaList(text string) []string {
	list := []string{}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}
