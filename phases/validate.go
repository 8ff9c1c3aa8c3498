package phases

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/text/suggest"
)

// Bounds of what a plugin may answer.
const (
	MaxContributions = 256
	MaxJSONDepth     = 32
	maxHooks         = 256
	maxTools         = 256
	MaxIDBytes       = 256
	maxName          = 128
	maxVersion       = 64
	// MaxListed bounds each list of a description and of a contribution. An invalidation
	// with more names is one of everything.
	MaxListed        = 256
	maxRetryAttempts = 10
)

// ValidID reports whether s may be an id that a plugin chooses:
// like ValidName, with "#" behind the first character and up to MaxIDBytes long.
func ValidID(s string) bool { return len(s) <= MaxIDBytes && isName(s, "_.:/-#") }

// ValidName reports whether s may name a hook, a section, a tool or a domain.
func ValidName(s string) bool { return len(s) <= maxName && isName(s, "_.:/-") }

func validVersion(s string) bool { return len(s) <= maxVersion && isName(s, "_.+~-") }

// isName reports whether s is ASCII letters, digits and, behind the first character, signs.
func isName(s, signs string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i == 0 || strings.IndexByte(signs, c) < 0:
			return false
		}
	}
	return s != ""
}

// ValidPluginName reports whether s may name a plugin: like ValidName, without
// dots, because the first dot of a subscription id ends the plugin's name.
func ValidPluginName(s string) bool {
	return ValidName(s) && !strings.ContainsAny(s, "./:")
}

// Owners that are not plugins. No plugin can be declared under these names.
const (
	// OwnerBuiltin owns the compiler's and the engine's own texts and tools.
	OwnerBuiltin = "builtin"
	// OwnerHost owns what the embedding program brought.
	OwnerHost = "host"
)

// ValidateDescription checks a plugin's description by itself, its hooks against the
// phases of t. It returns all mistakes joined, each naming the plugin and the field.
// Dependencies and conditions need the other plugins; the planner checks them.
func ValidateDescription(d *Description, t *Table) error {
	v := &checker{where: fmt.Sprintf("plugin %.80q", d.Name)}
	if !ValidPluginName(d.Name) {
		v.addf("name %.80q: use letters, digits, _ and -, beginning with a letter or digit", d.Name)
	}
	switch {
	case d.Version == "":
		v.addf("no version")
	case !validVersion(d.Version):
		v.addf("version %.80q: use letters, digits and _ . + ~ -, at most 64", d.Version)
	}
	if len(d.Hooks) > maxHooks || len(d.Tools) > maxTools {
		v.addf("%d hooks and %d tools; at most %d and %d", len(d.Hooks), len(d.Tools), maxHooks, maxTools)
		return errors.Join(v.errs...) // each mistake in them would be a line
	}
	v.listed("requires", len(d.Requires))
	seen := map[string]int{}
	for i := range d.Hooks {
		h := &d.Hooks[i]
		field := fmt.Sprintf("hooks[%d] (%.80s)", i, h.Name)
		if first, dup := seen[h.Name]; dup {
			v.addf("%s: hook %.80q is registered twice, first as hooks[%d]", field, h.Name, first)
		} else {
			seen[h.Name] = i
		}
		for _, err := range ValidateHook(h, t) {
			v.addf("%s: %v", field, err)
		}
	}
	for _, err := range validateTools(d.Tools) {
		v.addf("%v", err)
	}
	if err := checkObject(d.ConfigSchema); err != nil {
		v.addf("config_schema: %v", err)
	}
	return errors.Join(v.errs...)
}

// ValidateHook checks one hook's fields, as proposed or with an operator's overrides
// applied. It returns each mistake without naming the hook.
func ValidateHook(h *Hook, t *Table) []error {
	v := &checker{}
	if v.lists(h); len(v.errs) > 0 {
		return v.errs
	}
	if !ValidName(h.Name) {
		v.addf("name %.80q: use letters, digits and _ . : / -, beginning with a letter or digit", h.Name)
	}
	row, ok := t.Lookup(h.Phase)
	if !ok {
		v.addf("unknown phase %.80q%s", h.Phase, suggest.DidYouMean(string(h.Phase), t.Names()))
		return v.errs
	}
	v.role(h, row)
	for _, k := range h.Kinds {
		switch {
		case !k.Known():
			v.addf("unknown kind %.80q%s", k, suggest.DidYouMean(string(k), words(Kinds())))
		case !row.Accepts(k):
			v.addf("phase %s does not take %s", h.Phase, k)
		}
	}
	if h.Timeout < 0 {
		v.addf("timeout %v: must not be negative", h.Timeout)
	}
	if h.Budget.Chars < 0 || h.Budget.Tokens < 0 {
		v.addf("budget: must not be negative")
	}
	if err := h.OnFailure.check(); err != nil {
		v.addf("on_failure: %v", err)
	}
	v.order("after", h.After)
	v.order("before", h.Before)
	v.fallback(h, row)
	v.retry(h)
	v.cache(h, row)
	v.needs(h, row)
	v.visibility(h)
	return v.errs
}

// checker collects mistakes.
type checker struct {
	where string
	errs  []error
}

func (v *checker) addf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if v.where != "" {
		err = fmt.Errorf("%s: %w", v.where, err)
	}
	v.errs = append(v.errs, err)
}

func (v *checker) listed(field string, n int) {
	if n > MaxListed {
		v.addf("%s: %d entries; at most %d", field, n, MaxListed)
	}
}

// lists checks the lengths of a hook's lists. The entries of a list that is too long
// are not checked: each may cost a message and a search.
func (v *checker) lists(h *Hook) {
	v.listed("kinds", len(h.Kinds))
	v.listed("after", len(h.After))
	v.listed("before", len(h.Before))
	v.listed("needs", len(h.Needs))
	v.listed("on_failure", len(h.OnFailure.ByCause))
	v.listed("fallback", len(h.Fallback))
	if h.Cache != nil {
		v.listed("cache.vary", len(h.Cache.Vary))
		v.listed("cache.tags", len(h.Cache.Tags))
	}
}

func (v *checker) role(h *Hook, row Row) {
	switch {
	case h.Role == "":
	case !slices.Contains(Roles(), h.Role):
		v.addf("unknown role %.80q%s", h.Role, suggest.DidYouMean(string(h.Role), words(Roles())))
	case !row.Takes(h.Role):
		v.addf("phase %s does not take the role %s", h.Phase, h.Role)
	case h.Role == RoleValidate && slices.Contains(h.Kinds, KindRewrite):
		v.addf("a hook with the role validate must not rewrite: nobody would judge what it wrote; use transform")
	}
}

// order checks the form of subscription ids; the planner checks that they exist.
func (v *checker) order(field string, ids []string) {
	for _, id := range ids {
		if !ValidID(strings.TrimSuffix(id, "?")) {
			v.addf("%s %.80q: is not a subscription's id", field, id)
		}
	}
}

func (v *checker) fallback(h *Hook, row Row) {
	if h.OnFailure.Uses(UseInstead) && len(h.Fallback) == 0 {
		v.addf("on_failure is fallback, and there are no fallback contributions")
	}
	for i, c := range h.Fallback {
		if c == nil {
			v.addf("fallback[%d]: empty", i)
			continue
		}
		if !slices.Contains(h.Kinds, KindOf(c)) && KindOf(c).NeedsGrant() {
			v.addf("fallback[%d]: kind %s is not among the hook's kinds", i, KindOf(c))
		}
		if err := ValidateContribution(c, row); err != nil {
			v.addf("fallback[%d]: %s", i, Whole(err))
		}
	}
}

func (v *checker) retry(h *Hook) {
	if h.Retry == nil || h.Retry.Attempts <= 1 {
		return
	}
	if !h.Idempotent {
		v.addf("retry: only hooks that declare themselves idempotent are retried")
	}
	if h.Retry.Attempts > maxRetryAttempts || h.Retry.Backoff < 0 {
		v.addf("retry: at most %d attempts, and no negative backoff", maxRetryAttempts)
	}
}

func (v *checker) cache(h *Hook, row Row) {
	if h.Cache == nil {
		return
	}
	if h.Cache.TTL < 0 {
		v.addf("cache: ttl must not be negative")
	}
	if row.Decides() || h.Role == RoleValidate || h.Role == RoleObserve || row.Queue {
		v.addf("cache: validators, background hooks and phases that take decisions are never cached")
	}
	known := contextFields()
	in := row.NewInput()
	for _, field := range inputNames(in) {
		known = append(known, "input."+field)
	}
	_, custom := in.(*CustomInput)
	for _, name := range h.Cache.Vary {
		if !slices.Contains(known, name) && (!custom || !strings.HasPrefix(name, "input.")) {
			v.addf("cache: vary %.80q is not a field of the context or the input%s", name, suggest.DidYouMean(name, known))
		}
	}
}

func (v *checker) needs(h *Hook, row Row) {
	known := Visible(row)
	for _, name := range h.Needs {
		if known == nil && strings.ContainsAny(name, "./") {
			v.addf("needs %.80q: name a field of the input itself, such as %q", name, name[:strings.IndexAny(name, "./")])
		}
		if known != nil && name != NeedsNothing && !slices.Contains(known, name) {
			v.addf("needs %.80q, which is not a field of the input of %s or one of %s%s",
				name, row.Phase, strings.Join(SeenSets(), ", "), suggest.DidYouMean(name, known))
		}
	}
}

// Visible returns what a hook of the phase may need and be granted: the fields of its input by JSON name, and
// [SeenSets]. It is nil for a phase of the host's own, whose input has any fields.
func Visible(row Row) []string {
	in := row.NewInput()
	if _, custom := in.(*CustomInput); custom {
		return nil
	}
	return append(inputNames(in), SeenSets()...)
}

func (v *checker) visibility(h *Hook) {
	known := []Visibility{VisibilityInternal, VisibilityDebug, VisibilityUserAudit, VisibilityUserVisible}
	if h.Visibility != "" && !slices.Contains(known, h.Visibility) {
		v.addf("unknown visibility %.80q%s", h.Visibility, suggest.DidYouMean(string(h.Visibility), words(known)))
	}
}

// contextFields are the context's fields that a cache key may vary by: all but the clock.
func contextFields() (names []string) {
	for f := range reflect.TypeFor[Context]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "now" {
			names = append(names, name)
		}
	}
	return names
}

// validateTools checks names (unique), hidden domains and schemas.
func validateTools(tools []Tool) []error {
	v := &checker{}
	seen := map[string]int{}
	for i := range tools {
		t := &tools[i]
		if !ValidName(t.Name) {
			v.addf("tools[%d]: name %.80q: use letters, digits and _ . : / -", i, t.Name)
		}
		if first, dup := seen[t.Name]; dup {
			v.addf("tools[%d]: %.80q is there twice, first as tools[%d]", i, t.Name, first)
		}
		seen[t.Name] = i
		if !utf8.ValidString(t.Description) || strings.IndexByte(t.Description, 0) >= 0 {
			v.addf("tools[%d] (%.80s): description is not UTF-8 without NUL", i, t.Name)
		}
		if t.HiddenDomain != "" && !ValidName(t.HiddenDomain) {
			v.addf("tools[%d] (%.80s): hidden_domain %.80q: use letters, digits and _ . : / -", i, t.Name, t.HiddenDomain)
		}
		if err := checkObject(t.InputSchema); err != nil {
			v.addf("tools[%d] (%.80s): input_schema: %v", i, t.Name, err)
		}
	}
	return v.errs
}
