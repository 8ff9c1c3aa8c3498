package phases

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of what a plugin may answer.
const (
	MaxContributions = 256
	MaxJSONDepth     = 32
	MaxHooks         = 256
	MaxTools         = 256
	MaxIDBytes       = 256
	maxRetryAttempts = 10
)

// namePattern is the form of plugin and hook names, section ids, tool names.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$`)

// ValidName reports whether s may name a hook, a section, a tool or a domain.
func ValidName(s string) bool { return namePattern.MatchString(s) }

// ValidPluginName reports whether s may name a plugin: like ValidName, without
// dots, because the first dot of a subscription id ends the plugin's name.
func ValidPluginName(s string) bool {
	return ValidName(s) && !strings.ContainsAny(s, "./:")
}

// ValidateDescription checks a plugin's description by itself: the name and
// version, each hook's name (unique), phase, kinds, role, failure policy,
// fallback, retry and cache, each tool's name (unique) and schema, and the
// configuration schema. It returns all mistakes joined, each naming the plugin
// and the field; hooks are checked against the phases of t. Dependencies and
// conditions need the other plugins and are checked by the planner.
func ValidateDescription(d *Description, t *Table) error {
	v := &checker{where: fmt.Sprintf("plugin %q", d.Name)}
	if !ValidPluginName(d.Name) {
		v.addf("name %q: use letters, digits, _ and -, beginning with a letter or digit", d.Name)
	}
	if d.Version == "" {
		v.addf("no version")
	}
	if len(d.Hooks) > MaxHooks || len(d.Tools) > MaxTools {
		v.addf("%d hooks and %d tools; at most %d and %d", len(d.Hooks), len(d.Tools), MaxHooks, MaxTools)
	}
	seen := map[string]int{}
	for i := range d.Hooks {
		h := &d.Hooks[i]
		field := fmt.Sprintf("hooks[%d] (%s)", i, h.Name)
		if first, dup := seen[h.Name]; dup {
			v.addf("%s: hook %q is registered twice, first as hooks[%d]", field, h.Name, first)
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

// ValidateHook checks one hook's fields, as proposed by a plugin or as they
// stand after an operator's overrides. It returns each mistake without naming
// the hook.
func ValidateHook(h *Hook, t *Table) []error {
	v := &checker{}
	if !ValidName(h.Name) {
		v.addf("name %q: use letters, digits and _ . : / -, beginning with a letter or digit", h.Name)
	}
	row, ok := t.Lookup(h.Phase)
	if !ok {
		v.addf("unknown phase %q%s", h.Phase, DidYouMean(string(h.Phase), t.Names()))
		return v.errs
	}
	v.role(h, row)
	for _, k := range h.Kinds {
		switch {
		case !k.Known():
			v.addf("unknown kind %q%s", k, DidYouMean(string(k), words(Kinds())))
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
	v.fallback(h, row)
	v.retry(h)
	v.cache(h, row)
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

func (v *checker) role(h *Hook, row Row) {
	switch {
	case h.Role == "":
	case !slices.Contains(Roles(), h.Role):
		v.addf("unknown role %q%s", h.Role, DidYouMean(string(h.Role), words(Roles())))
	case !row.Takes(h.Role):
		v.addf("phase %s does not take the role %s", h.Phase, h.Role)
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
		if !slices.Contains(h.Kinds, c.Kind()) && c.Kind().NeedsGrant() {
			v.addf("fallback[%d]: kind %s is not among the hook's kinds", i, c.Kind())
		}
		if err := ValidateContribution(c, row); err != nil {
			v.addf("fallback[%d]: %v", i, err)
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
	for _, name := range h.Cache.Vary {
		field, isInput := strings.CutPrefix(name, "input.")
		if _, custom := row.NewInput().(*CustomInput); isInput && custom {
			continue
		}
		if known := varyNames(row); isInput && !slices.Contains(known, name) || !isInput && !slices.Contains(contextFields(), field) {
			v.addf("cache: vary %q is no field of the context or the input%s", name, DidYouMean(name, append(known, contextFields()...)))
		}
	}
}

func (v *checker) visibility(h *Hook) {
	known := []Visibility{VisibilityInternal, VisibilityDebug, VisibilityUserAudit, VisibilityUserVisible}
	if h.Visibility != "" && !slices.Contains(known, h.Visibility) {
		v.addf("unknown visibility %q%s", h.Visibility, DidYouMean(string(h.Visibility), words(known)))
	}
}

func varyNames(row Row) []string {
	var names []string
	for name := range InputFields(row.NewInput()) {
		names = append(names, "input."+name)
	}
	slices.Sort(names)
	return names
}

// contextFields are the context's fields that a cache key may vary by.
func contextFields() []string {
	return []string{
		"workspace_id", "thread_id", "conversation_thread_id", "turn_id", "task_id", "agent_id", "session_id", "parent_session_id",
		"epoch", "mode", "profile", "actor", "dir", "flags", "metadata",
	}
}

// ValidateContribution checks one contribution against its phase: the kind is
// taken, required fields are there, words are known, ids are well formed, text
// is UTF-8 without NUL, embedded JSON is valid and at most [MaxJSONDepth] deep.
// A kind that the phase does not take is a [CodeNotAllowed] error; anything
// else is [CauseInvalidReply].
func ValidateContribution(c Contribution, row Row) error {
	if !row.Accepts(c.Kind()) {
		return Errorf(CodeNotAllowed, "phase %s does not take %s", row.Phase, c.Kind())
	}
	v := &contributionCheck{}
	head := c.Head()
	v.text("contribution_id", head.ContributionID, MaxIDBytes)
	v.text("domain", head.Domain, MaxIDBytes)
	for i := range head.Diagnostics {
		v.text("diagnostics", head.Diagnostics[i].Code, MaxIDBytes)
		v.text("diagnostics", head.Diagnostics[i].Message, 0)
	}
	v.body(c)
	if v.err != nil {
		return &Error{Code: CauseInvalidReply, Message: fmt.Sprintf("%s: %v", c.Kind(), v.err)}
	}
	return nil
}

// contributionCheck keeps the first mistake.
type contributionCheck struct{ err error }

func (v *contributionCheck) body(c Contribution) {
	switch c := c.(type) {
	case *Policy:
		v.need("domain", c.Domain)
		v.need("key", c.Key)
		v.json("value", c.Value, true)
	case *PromptContext:
		v.text("content", c.Content, 0)
		v.limit("max_chars", c.MaxChars)
		v.refs(c.SourceRefs)
	case *PromptSection:
		v.section(c)
	case *ToolBundle:
		v.name("bundle_id", c.BundleID)
		if errs := validateTools(c.Tools); v.err == nil && len(errs) > 0 {
			v.err = errs[0]
		}
	case *Decision:
		v.word("verdict", string(c.Verdict), "allow", "ask", "deny")
		v.text("reason", c.Reason, 0)
		v.text("reason_code", c.ReasonCode, MaxIDBytes)
	case *Rewrite:
		if c.Path != "" && c.Path[0] != '/' {
			v.fail("path", "is not a JSON pointer")
		}
		v.text("path", c.Path, 0)
		v.json("value", c.Value, true)
	case *Reminder:
		v.name("type", c.Type)
		v.text("text", c.Text, 0)
		v.text("dedupe_key", c.DedupeKey, 0)
		for name, value := range c.Attributes {
			v.name("attributes", name)
			v.text("attributes", value, 0)
		}
	case *ManifestDiagnostic:
		v.need("code", c.Code)
		v.text("message", c.Message, 0)
		v.word("severity", string(c.Severity), "", "info", "warning", "error")
	case *Audit:
		v.need("event_kind", c.EventKind)
		v.json("details", c.Details, false)
	case *BackgroundJob:
		v.need("job_kind", c.JobKind)
		v.text("idempotency_key", c.IdempotencyKey, MaxIDBytes)
		v.json("payload", c.Payload, false)
	}
}

func (v *contributionCheck) section(c *PromptSection) {
	v.name("section_id", c.SectionID)
	v.text("title", c.Title, 0)
	if strings.ContainsAny(c.Title, "\r\n") {
		v.fail("title", "is more than one line")
	}
	v.word("stability", string(c.Stability), "", "stable", "dynamic")
	v.word("placement", string(c.Placement), "", "system", "system_message", "user_message")
	v.text("content", c.Content, 0)
	if c.Frame != nil {
		v.text("frame", c.Frame.Open, 0)
		v.text("frame", c.Frame.Close, 0)
	}
	v.limit("max_chars", c.MaxChars)
	v.refs(c.SourceRefs)
	if c.Cut != nil && (c.Cut.Kept < 0 || c.Cut.Original < c.Cut.Kept) {
		v.fail("cut", "kept must be between 0 and original")
	}
}

func (v *contributionCheck) fail(field, what string) {
	if v.err == nil {
		v.err = fmt.Errorf("%s %s", field, what)
	}
}

func (v *contributionCheck) text(field, s string, maxBytes int) {
	switch {
	case !utf8.ValidString(s):
		v.fail(field, "is not valid UTF-8")
	case strings.IndexByte(s, 0) >= 0:
		v.fail(field, "holds a NUL")
	case maxBytes > 0 && len(s) > maxBytes:
		v.fail(field, fmt.Sprintf("is longer than %d bytes", maxBytes))
	}
}

func (v *contributionCheck) need(field, s string) {
	if s == "" {
		v.fail(field, "is empty")
	}
	v.text(field, s, MaxIDBytes)
}

func (v *contributionCheck) name(field, s string) {
	if !ValidName(s) {
		v.fail(field, fmt.Sprintf("%.80q is not a name (letters, digits and _ . : / -, at most 128)", s))
	}
}

func (v *contributionCheck) word(field, s string, known ...string) {
	if !slices.Contains(known, s) {
		v.fail(field, fmt.Sprintf("%.80q is none of %s", s, strings.Trim(strings.Join(known, ", "), ", ")))
	}
}

func (v *contributionCheck) limit(field string, n int) {
	if n < 0 {
		v.fail(field, "is negative")
	}
}

func (v *contributionCheck) refs(refs []SourceRef) {
	for _, r := range refs {
		v.word("source_refs", r.Kind, SourceKinds()...)
		v.text("source_refs", r.ID, 0)
		v.text("source_refs", r.Label, 0)
	}
}

func (v *contributionCheck) json(field string, raw json.RawMessage, required bool) {
	if len(raw) == 0 {
		if required {
			v.fail(field, "is empty")
		}
		return
	}
	if err := CheckJSON(raw, MaxJSONDepth); err != nil {
		v.fail(field, err.Error())
	}
}

// validateTools checks names (unique) and schemas.
func validateTools(tools []Tool) []error {
	v := &checker{}
	seen := map[string]int{}
	for i := range tools {
		t := &tools[i]
		if !ValidName(t.Name) {
			v.addf("tools[%d]: name %.80q: use letters, digits and _ . : / -", i, t.Name)
		}
		if first, dup := seen[t.Name]; dup {
			v.addf("tools[%d]: %q is there twice, first as tools[%d]", i, t.Name, first)
		}
		seen[t.Name] = i
		if !utf8.ValidString(t.Description) || strings.IndexByte(t.Description, 0) >= 0 {
			v.addf("tools[%d] (%s): description is not UTF-8 without NUL", i, t.Name)
		}
		if err := checkObject(t.InputSchema); err != nil {
			v.addf("tools[%d] (%s): input_schema: %v", i, t.Name, err)
		}
	}
	return v.errs
}

// checkObject accepts nothing, or a JSON object.
func checkObject(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	if err := CheckJSON(raw, MaxJSONDepth); err != nil {
		return err
	}
	if trimmed := bytes.TrimLeft(raw, " \t\r\n"); trimmed[0] != '{' {
		return errors.New("is not a JSON object")
	}
	return nil
}

// CheckJSON checks that raw is one valid JSON value in UTF-8, without NUL, nested
// at most depth deep. The nesting is checked first, without recursion.
func CheckJSON(raw []byte, depth int) error {
	if d := jsonDepth(raw); d > depth {
		return fmt.Errorf("is JSON nested deeper than %d", depth)
	}
	if !json.Valid(raw) {
		return errors.New("is not valid JSON")
	}
	if !utf8.Valid(raw) {
		return errors.New("is not valid UTF-8")
	}
	if bytes.Contains(raw, []byte(`\u0000`)) && holdsEscapedNUL(raw) {
		return errors.New("holds a NUL")
	}
	return nil
}

// holdsEscapedNUL tells \u0000 from \\u0000.
func holdsEscapedNUL(raw []byte) bool {
	for i := 0; i < len(raw)-5; i++ {
		if raw[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(raw[i:], []byte(`\u0000`)) {
			return true
		}
		i++ // skip the escaped byte
	}
	return false
}

// jsonDepth counts the deepest nesting of brackets outside strings.
func jsonDepth(raw []byte) int {
	depth, deepest, inString := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// DecodeInput decodes the JSON input of a phase strictly: unknown fields, a
// second value and bad embedded JSON are errors. Empty data is a zero input.
func DecodeInput(t *Table, p Phase, data []byte) (Input, error) {
	row, ok := t.Lookup(p)
	if !ok {
		return nil, fmt.Errorf("unknown phase %q%s", p, DidYouMean(string(p), t.Names()))
	}
	in := row.NewInput()
	if len(bytes.TrimSpace(data)) == 0 {
		return in, nil
	}
	if err := CheckJSON(data, MaxJSONDepth); err != nil {
		return nil, fmt.Errorf("input %w", err)
	}
	if err := strict(data, in); err != nil {
		return nil, fmt.Errorf("input of %s: %w", p, err)
	}
	return in, nil
}

// DecodeContext decodes a context strictly. Empty data is a zero context.
func DecodeContext(data []byte) (Context, error) {
	var c Context
	if len(bytes.TrimSpace(data)) == 0 {
		return c, nil
	}
	if err := CheckJSON(data, MaxJSONDepth); err != nil {
		return c, fmt.Errorf("context %w", err)
	}
	if err := strict(data, &c); err != nil {
		return Context{}, fmt.Errorf("context: %w", err)
	}
	return c, nil
}

// ValidateInput checks what cannot be expressed by types: text is UTF-8 without
// NUL, embedded JSON is valid and not too deep. The engine runs it before
// anything is sent.
func ValidateInput(in Input) error {
	v := &inputCheck{}
	if custom, ok := in.(*CustomInput); ok {
		// Without this an object that is none would show no fields at all.
		if err := checkObject(custom.Fields); err != nil {
			return fmt.Errorf("input %w", err)
		}
	}
	in.shallow().visit(v)
	return v.err
}

type inputCheck struct{ contributionCheck }

func (v *inputCheck) text(name string, p *Text)       { v.contributionCheck.text(name, p.Value, 0) }
func (v *inputCheck) preview(name string, p *Preview) { v.contributionCheck.text(name, p.Text, 0) }
func (v *inputCheck) raw(name string, p *json.RawMessage) {
	v.json(name, *p, false)
}

func (v *inputCheck) list(name string, p *[]string) {
	for _, s := range *p {
		v.contributionCheck.text(name, s, 0)
	}
}
func (v *inputCheck) word(name string, p *string) { v.contributionCheck.text(name, *p, 0) }
func (v *inputCheck) flag(string, *bool)          {}
func (v *inputCheck) number(string, *int)         {}
func (v *inputCheck) other(_ string, o otherField) {
	if o.check != nil {
		o.check(&v.contributionCheck)
	}
}
