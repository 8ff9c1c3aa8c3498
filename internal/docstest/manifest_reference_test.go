package docstest

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// reference is the document about manifests.
const reference = "docs/MANIFEST.md"

// codeWord is one word in code.
var codeWord = regexp.MustCompile("`([^`]+)`")

// rows returns the rows of the tables below a heading, up to the next heading: the
// words in code of the first cell, and the other cells.
func rows(t *testing.T, d document, heading string) map[string][]string {
	t.Helper()
	_, below, found := strings.Cut(prose(d), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", d.name, heading)
	}
	below, _, _ = strings.Cut(below, "\n#")
	out := map[string][]string{}
	for line := range strings.Lines(below) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		for _, m := range codeWord.FindAllStringSubmatch(cells[0], -1) {
			if out[m[1]] != nil {
				t.Errorf("%s: below %q there are two rows of %s", d.name, heading, m[1])
			}
			out[m[1]] = cells[1:]
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s has no table below %q", d.name, heading)
	}
	return out
}

// leaf is a field of a manifest that has no fields of its own: its path in JSON
// without the marks of lists, and how to change it.
type leaf struct {
	path   string
	change func()
}

// leaves fills v and all that it holds, each list with one row, and lists its
// leaves. Changing one gives it another value than the first.
func leaves(t *testing.T, v reflect.Value, path string) []leaf {
	t.Helper()
	switch v.Kind() { //nolint:exhaustive // no field is of another kind
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return leaves(t, v.Elem(), path)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte("1"))
			return []leaf{{path, func() { v.SetBytes([]byte("2")) }}}
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return leaves(t, v.Index(0), path)
	case reflect.Struct:
		if at, ok := reflect.TypeAssert[*time.Time](v.Addr()); ok {
			*at = time.Unix(1, 0).UTC()
			return []leaf{{path, func() { *at = at.Add(time.Second) }}}
		}
		var all []leaf
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if name == "-" {
				continue // not of the record
			}
			all = append(all, leaves(t, v.Field(i), strings.Trim(path+"."+name, "."))...)
		}
		return all
	case reflect.String:
		v.SetString("a")
		return []leaf{{path, func() { v.SetString("b") }}}
	case reflect.Int:
		v.SetInt(1)
		return []leaf{{path, func() { v.SetInt(2) }}}
	case reflect.Uint64:
		v.SetUint(1)
		return []leaf{{path, func() { v.SetUint(2) }}}
	case reflect.Float64:
		v.SetFloat(1)
		return []leaf{{path, func() { v.SetFloat(2) }}}
	}
	t.Fatalf("%s is of the kind %s, which this test does not know", path, v.Kind())
	return nil
}

// described returns the rows of all fields of a manifest by their paths.
func described(t *testing.T, d document, groups []string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, heading := range []string{"### Head", "### Fingerprints", "### Integrity", "### `section_ids`"} {
		maps.Copy(all, rows(t, d, heading))
	}
	for _, group := range groups {
		for path, cells := range rows(t, d, "### `"+group+"`") {
			all[group+"."+path] = cells
		}
	}
	return all
}

// TestManifestFields wants a row for every field of a manifest, no row for
// anything else, and in each the truth about content_hash: the field is changed,
// and the hash with it or not. The record's own hash has to cover all but two.
func TestManifestFields(t *testing.T) {
	t.Parallel()

	var m manifest.Manifest
	fields := leaves(t, reflect.ValueOf(&m).Elem(), "")
	var groups []string
	for _, f := range fields {
		if group, _, nested := strings.Cut(f.path, "."); nested && !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	table := described(t, document{reference, text(t, reference)}, groups)
	words := map[bool]string{true: "yes", false: "no"}
	for _, f := range fields {
		content, record := hashes(t, &m)
		f.change()
		contentNow, recordNow := hashes(t, &m)
		row := table[f.path]
		if delete(table, f.path); row == nil {
			t.Errorf("%s has no row of %s", reference, f.path)
			continue
		}
		if want := words[content != contentNow]; row[0] != want {
			t.Errorf("%s says that %s counts: %s, and it does: %s", reference, f.path, row[0], want)
		}
		if covered, want := record != recordNow, f.path != "hash" && f.path != "cache.actual"; covered != want {
			t.Errorf("the hash covers %s: %v, want %v", f.path, covered, want)
		}
	}
	for path := range table {
		t.Errorf("%s has a row of %s, which no manifest has", reference, path)
	}
	if len(fields) < 100 {
		t.Errorf("found %d fields: the search does not work", len(fields))
	}
}

// hashes are those of the content and of the record.
func hashes(t *testing.T, m *manifest.Manifest) (content, record string) {
	t.Helper()
	content, err := manifest.ContentHash(m)
	if err != nil {
		t.Fatal(err)
	}
	if record, err = manifest.RecordHash(m, nil); err != nil {
		t.Fatal(err)
	}
	return content, record
}

// TestManifestSchema wants the fields of the published schema to be those that
// TestManifestFields goes by.
func TestManifestSchema(t *testing.T) {
	t.Parallel()

	var schema map[string]any
	if err := json.Unmarshal(manifest.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	var m manifest.Manifest
	var want []string
	for _, f := range leaves(t, reflect.ValueOf(&m).Elem(), "") {
		want = append(want, f.path)
	}
	got := schemaLeaves(schema, "")
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields of the schema (-type +schema):\n%s", diff)
	}
}

// schemaLeaves lists the paths of a schema's leaves, without the marks of lists.
func schemaLeaves(schema map[string]any, path string) []string {
	if items, ok := schema["items"].(map[string]any); ok {
		return schemaLeaves(items, path)
	}
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return []string{path}
	}
	var all []string
	for name, member := range properties {
		member, _ := member.(map[string]any)
		all = append(all, schemaLeaves(member, strings.Trim(path+"."+name, "."))...)
	}
	return all
}

// TestManifestEnums wants each word of the schema's closed lists in the document.
func TestManifestEnums(t *testing.T) {
	t.Parallel()

	doc, found := text(t, reference), 0
	var visit func(v any)
	visit = func(v any) {
		object, _ := v.(map[string]any)
		for _, word := range anyList(object["enum"]) {
			if word, _ := word.(string); word != "" {
				found++
				if !strings.Contains(doc, "`"+word+"`") {
					t.Errorf("%s does not explain the word %s", reference, word)
				}
			}
		}
		for _, member := range object {
			visit(member)
		}
	}
	var schema map[string]any
	if err := json.Unmarshal(manifest.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	visit(schema)
	if found < 40 {
		t.Errorf("found %d words: the search does not work", found)
	}
}

// TestManifestCodes compares the tables of codes with the constants in the
// sources of all packages that put codes into a manifest, or beside it.
func TestManifestCodes(t *testing.T) {
	t.Parallel()

	want := map[string]bool{}
	for _, dir := range []string{"phases", "compiler", "home", "runtime", "internal/merge", "internal/plan", "internal/wire", "internal/supervise"} {
		for name, value := range constants(t, dir) {
			if strings.HasPrefix(strings.ToLower(name), "code") || dir == "internal/plan" && strings.HasPrefix(name, "Reason") {
				want[value] = true
			}
		}
	}
	for _, cause := range phases.FailureCauses() {
		delete(want, string(cause)) // docs/CONFIGURATION.md has them
	}
	want[string(phases.CauseForbidden)], want[string(phases.CauseConflict)] = true, true // they are said of contributions, too
	got := slices.Sorted(maps.Keys(rows(t, document{reference, text(t, reference)}, "### Codes")))
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), got); diff != "" {
		t.Errorf("codes in %s (-sources +document):\n%s", reference, diff)
	}
}

// TestManifestReasons does the same with the reasons of left_out. Those that are
// causes have no constants of their own.
func TestManifestReasons(t *testing.T) {
	t.Parallel()

	want := map[string]bool{string(phases.CauseForbidden): true, string(phases.CauseConflict): true, phases.CodeNotAllowed: true}
	for _, dir := range []string{"compiler", "internal/merge"} {
		for name, value := range constants(t, dir) {
			if strings.HasPrefix(name, "Reason") {
				want[value] = true
			}
		}
	}
	got := slices.Sorted(maps.Keys(rows(t, document{reference, text(t, reference)}, "### Reasons")))
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), got); diff != "" {
		t.Errorf("reasons in %s (-sources +document):\n%s", reference, diff)
	}
}

// constants returns the string constants of a package by name.
func constants(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(t), filepath.FromSlash(dir), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, v := range spec.Values {
				lit, ok := v.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					continue
				}
				if found[spec.Names[i].Name], err = strconv.Unquote(lit.Value); err != nil {
					t.Fatal(err)
				}
			}
			return true
		})
	}
	return found
}
