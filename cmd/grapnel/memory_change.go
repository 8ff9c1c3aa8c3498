package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/grapnelhq/grapnel/internal/facts/secret"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/words"
)

type memoryForgotten struct {
	DryRun    bool             `json:"dry_run"`
	Items     []itemstore.Item `json:"items"     jsonschema:"what was to be forgotten, the first of them"`
	Count     int              `json:"count"     jsonschema:"how many were to be forgotten"`
	Forgotten []string         `json:"forgotten" jsonschema:"the ids that are gone, older versions included; of very many not all"`
	Gone      int              `json:"gone"      jsonschema:"how many are gone, older versions included"`
	More      bool             `json:"more"      jsonschema:"others fit the query that were not shown and not forgotten"`
	Lingering string           `json:"lingering" jsonschema:"why their bytes may still be in the files of the database; empty if they are not"`

	ids map[string][]string
}

type forgetFlags struct {
	memoriesFlags
	narrowed

	Query  string `flag:"query"   usage:"forget what fits the {TEXT}"`
	Person string `flag:"person"  usage:"forget all memories of one person in all workspaces, and all with the name in their text or in what was said: {WHO} is the actor's id or the name"`
	All    bool   `flag:"all"     usage:"forget all memories of the workspace; with --scope and --category those"`
	Yes    bool   `flag:"yes"     usage:"do not ask"`
	Dry    bool   `flag:"dry-run" usage:"show what would be forgotten, and forget nothing"`

	ids []string
}

// add notes one memory that is to be forgotten.
func (r *memoryForgotten) add(i itemstore.Item) {
	r.ids[i.WorkspaceID] = append(r.ids[i.WorkspaceID], i.ID)
	r.Count++
	if len(r.Items) < memoryPage {
		r.Items = append(r.Items, i)
	}
}

// memoryForget finds what is meant, asks, and only then opens the store for writing.
func (a *app) memoryForget(ctx context.Context, f *forgetFlags, args []string) error {
	f.ids = slices.Compact(slices.Sorted(slices.Values(args)))
	f.Query, f.Person = strings.TrimSpace(f.Query), strings.TrimSpace(f.Person)
	ways := 0
	for _, given := range []bool{len(f.ids) > 0, f.Query != "", f.Person != "", f.All} {
		if given {
			ways++
		}
	}
	switch {
	case ways != 1:
		return usagef("say what to forget: an ID (see: grapnel memory list), --query TEXT, --person WHO, or --all")
	case f.narrowed != (narrowed{}) && !f.All:
		return usagef("--scope and --category go with --all")
	}
	r := &memoryForgotten{DryRun: f.Dry, Items: []itemstore.Item{}, Forgotten: []string{}, ids: map[string][]string{}}
	var found *memories
	var untidy bool
	err := a.withMemories(ctx, &f.memoriesFlags, func(m *memories) (err error) {
		found = m
		if m.Store == nil && f.DSN != "" {
			return unable(errors.New(m.nothing() + ": there is no such database"))
		}
		if untidy, err = m.untidy(ctx); err != nil {
			return err
		}
		return f.find(ctx, m, r)
	})
	switch {
	case err != nil || f.Dry:
	case r.Count > 0:
		err = a.forget(ctx, found, f.Yes, r)
	case untidy:
		err = a.tidy(ctx, found, r)
	}
	if err != nil {
		return err
	}
	if r.Lingering != "" {
		err = unable(fmt.Errorf("it is forgotten, but bytes of it may still be in the files of the database: %s", r.Lingering))
	}
	return firstOf(a.print(r, func() { a.printForgotten(r, found) }), err)
}

// tidy removes what earlier forgettings had to leave in the files, as each opening does.
func (a *app) tidy(ctx context.Context, m *memories, r *memoryForgotten) error {
	return m.open(ctx, a, itemstore.Options{}, func() error {
		untidy, err := m.Untidy(ctx)
		if untidy {
			r.Lingering = "try again when nobody reads it"
		}
		return err
	})
}

// find finds what is to be forgotten.
func (f *forgetFlags) find(ctx context.Context, m *memories, r *memoryForgotten) error {
	for _, id := range f.ids {
		item, err := m.find(ctx, id)
		if err != nil {
			return err
		}
		r.add(item)
	}
	switch {
	case len(f.ids) > 0 || len(m.workspaces) == 0:
		return nil
	case f.Person != "":
		return m.ofPerson(ctx, f.Person, r.add)
	case len(m.workspaces) > 1:
		some := m.workspaces[:min(len(m.workspaces), 10)]
		return usagef("there are memories of %d workspaces; choose one with --workspace: %s", len(m.workspaces), clean(strings.Join(some, ", ")))
	case f.All:
		return m.each(ctx, m.workspaces[:1], f.filter(), r.add)
	}
	hits, omitted, err := m.Matches(ctx, whole(m.workspaces[0]), f.Query, time.Now())
	for i := range hits {
		r.add(hits[i].Item)
	}
	r.More = omitted > 0
	return err
}

// unspaced are the letters of scripts that put no space between a name and the word beside it.
const unspaced = `\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}`

// saysName returns a function that reports whether a text has a name as words of its own, in any case.
func saysName(name string) func(text string) bool {
	name = norm.NFC.String(name)
	before, after := `(?:^|[^\pL\pM\pN]|[`+unspaced+`])`, `(?:$|[^\pL\pM\pN]|[`+unspaced+`])`
	if regexp.MustCompile(`^[` + unspaced + `]`).MatchString(name) {
		before = ""
	}
	if regexp.MustCompile(`[` + unspaced + `]\pM*$`).MatchString(name) {
		after = ""
	}
	words := strings.ReplaceAll(regexp.QuoteMeta(strings.Join(strings.Fields(name), " ")), " ", `\s+`)
	says := regexp.MustCompile(`(?i)` + before + words + after)
	return func(text string) bool { return says.MatchString(norm.NFC.String(text)) }
}

// ofPerson does something with the memories of the actor with an id ("ada" or "user:ada"), or of those who said that
// this is their name, and with those of anybody whose text or evidence says the id or the name. Of replaced versions it
// does so only with those whose successor stays.
func (m *memories) ofPerson(ctx context.Context, who string, do func(itemstore.Item)) error {
	name := cmp.Or(strings.TrimPrefix(who, "user:"), who)
	actors, isActor, gone, says := map[string]bool{}, false, map[string]bool{}, saysName(name)
	is := func(i *itemstore.Item) bool {
		return i.Scope == itemstore.ScopeUser && (strings.EqualFold(i.ScopeID, who) || strings.EqualFold(i.ScopeID, name))
	}
	err := m.each(ctx, m.all, itemstore.Filter{}, func(i itemstore.Item) {
		isActor = isActor || is(&i)
		if i.Slot == string(turnpolicy.SlotName) && i.Scope == itemstore.ScopeUser && says(i.Text) {
			actors[i.ScopeID] = true
		}
	})
	if err != nil {
		return err
	}
	inTexts := !isActor || strings.ContainsFunc(name, unicode.IsLetter) // a number identifies an actor and is not a name
	return m.each(ctx, m.workspaces, itemstore.Filter{History: true}, func(i itemstore.Item) {
		of := is(&i) || !isActor && i.Scope == itemstore.ScopeUser && actors[i.ScopeID]
		if gone[i.ID] = of || inTexts && (says(i.Text) || says(i.Evidence)) || gone[i.SupersededBy]; gone[i.ID] && !gone[i.SupersededBy] {
			do(i)
		}
	})
}

// each calls do for the memories of workspaces, the newest first.
func (m *memories) each(ctx context.Context, workspaces []string, filter itemstore.Filter, do func(itemstore.Item)) error {
	for _, workspace := range workspaces {
		for i, err := range m.All(ctx, whole(workspace), filter, itemstore.Page{Limit: itemstore.MaxPage}) {
			if err != nil {
				return err
			}
			do(i)
		}
	}
	return nil
}

const forgetPart = 5_000 // how many memories are forgotten at once; the database is tidied after each part

// forget asks, unless yes is given, and forgets what was found.
func (a *app) forget(ctx context.Context, m *memories, yes bool, r *memoryForgotten) error {
	if !yes {
		err := a.confirm("forget", "forgotten", r.Count, memoryCount(r.Count), func() {
			a.printMemories("to be forgotten", r.Items)
			a.printMore(r.Count - len(r.Items))
		})
		if err != nil {
			return err
		}
	}
	progress := a.startCount("forgetting: %s memories")
	defer progress.stop()
	return m.open(ctx, a, itemstore.Options{}, func() error {
		for _, workspace := range slices.Sorted(maps.Keys(r.ids)) {
			for part := range slices.Chunk(r.ids[workspace], forgetPart) {
				done, err := m.Forget(ctx, whole(workspace), part)
				r.removed(&done)
				progress.Store(int64(r.Gone))
				switch {
				case err != nil && r.Gone > 0:
					return unable(fmt.Errorf("%s of %s are forgotten, the rest is not: %w", text.Thousands(r.Gone), memoryCount(r.Count), oneLine{err}))
				case err != nil:
					return err
				}
			}
		}
		return nil
	})
}

// Only the first ids of very many are listed. Bytes that lingered after one part may be gone after the next.
func (r *memoryForgotten) removed(done *itemstore.Removed) {
	r.Gone += len(done.IDs)
	rest := itemstore.MaxPage - min(len(r.Forgotten), itemstore.MaxPage)
	r.Forgotten = append(r.Forgotten, done.IDs[:min(len(done.IDs), rest)]...)
	r.Lingering = ""
	if done.Lingering != nil {
		r.Lingering = oneLine{done.Lingering}.Error()
	}
}

func memoryCount(n int) string { return words.Count(n, "memory", "memories") }

func (a *app) printForgotten(r *memoryForgotten, m *memories) {
	switch {
	case len(m.workspaces) == 0:
		a.println(m.nothing())
		return
	case r.Count == 0:
		a.println(nothingFits)
		return
	case r.DryRun:
		a.printf("would forget %s", memoryCount(r.Count))
	default:
		a.printf("forgot %s", memoryCount(r.Count))
	}
	if older := r.Gone - r.Count; older > 0 {
		a.printf(" and %s of them", words.Count(older, "older version", "older versions"))
	}
	a.println()
	a.printMemories("", r.Items)
	a.printMore(r.Count - len(r.Items))
	if r.More {
		a.println("\nmore than these fit: run the same again")
	}
}

type memoryExported struct {
	File       string   `json:"file"`
	Items      int      `json:"items"      jsonschema:"how many memories were written, those included that others took the place of"`
	Workspaces []string `json:"workspaces"`
}

func (a *app) memoryExport(ctx context.Context, f *memoriesFlags, args []string) error {
	if len(args) == 1 && args[0] != "-" {
		return a.memoryExportTo(ctx, f, args[0])
	}
	_, err := a.exportMemories(ctx, f, a.stdout)
	return err
}

// exportMemories bypasses the buffer of other results. A closed pipe is not an error.
func (a *app) exportMemories(ctx context.Context, f *memoriesFlags, to io.Writer) (memoryExported, error) {
	done := memoryExported{Workspaces: []string{}}
	out := bufio.NewWriterSize(to, 1<<16)
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	progress := a.startCount("exporting: %s memories")
	defer progress.stop()
	err := a.withMemories(ctx, f, func(m *memories) error {
		for _, workspace := range m.workspaces {
			for i, err := range m.All(ctx, whole(workspace), itemstore.Filter{History: true}, itemstore.Page{Limit: itemstore.MaxPage, OldestFirst: true}) {
				line.Reset()
				if err = cmp.Or(err, enc.Encode(&i)); err == nil {
					_, err = out.Write(escapeJSON(line.Bytes()))
				}
				if err != nil {
					return unable(fmt.Errorf("the export is not complete: %w", err))
				}
				done.Items++
				progress.add()
			}
			done.Workspaces = append(done.Workspaces, workspace)
		}
		return out.Flush()
	})
	if errors.Is(err, syscall.EPIPE) {
		err = nil
	}
	return done, err
}

func (a *app) memoryExportTo(ctx context.Context, f *memoriesFlags, name string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return usagef("%s is there already; name a new FILE", name)
	case err != nil:
		return usagef("%s: %w", name, unwrapPath(err))
	}
	done, err := a.exportMemories(ctx, f, file)
	if closed := file.Close(); err == nil && closed != nil {
		err = unable(closed)
	}
	if err != nil {
		return errors.Join(err, os.Remove(name))
	}
	done.File = name
	return a.print(done, func() {
		a.printf("wrote %s of %s to %s\n", memoryCount(done.Items), words.Count(len(done.Workspaces), "workspace", "workspaces"), clean(name))
	})
}

type memoryImported struct {
	itemstore.Imported

	Lines  int  `json:"lines"   jsonschema:"how many memories the file has"`
	DryRun bool `json:"dry_run"`
}

type importFlags struct {
	memoryFlags

	Dry bool `flag:"dry-run" usage:"check the lines, and import nothing"`
}

// memoryImport reads the file twice: to check it, and to import it.
func (a *app) memoryImport(ctx context.Context, f *importFlags, args []string) (err error) {
	name, dry := args[0], f.Dry
	m, err := a.memories(&memoriesFlags{memoryFlags: f.memoryFlags})
	if err != nil {
		return err
	}
	file, done, err := a.importFile(name)
	if err != nil {
		return err
	}
	defer func() { err = firstOf(err, done()) }()
	result := memoryImported{DryRun: dry}
	scanner := secret.New()
	for item, err := range memoryLines(file) {
		if err == nil {
			err = item.Check()
		}
		if found := scanner.Find(item.Text + "\n" + item.Evidence); err == nil && len(found) > 0 {
			err = fmt.Errorf("it looks like a secret (rule %s), which is not kept; take the line out", found[0].Pattern)
		}
		if err != nil {
			return usagef("%s:%d: %w; nothing was imported", cmp.Or(words.If(name == "-", "standard input"), name), result.Lines+1, oneLine{err})
		}
		result.Lines++
	}
	if !dry {
		if err := a.importInto(ctx, m, file, &result); err != nil {
			return err
		}
	}
	return a.print(result, func() {
		place := clean(shownDSN(m.dsn))
		if dry {
			a.printf("the lines of %s are right; nothing was imported into %s\n", memoryCount(result.Lines), place)
			return
		}
		a.printf("imported %s into %s", memoryCount(result.Added+result.Replaced), place)
		for _, c := range []struct {
			name string
			n    int
		}{{"new", result.Added}, {"new in place of older ones", result.Replaced}, {"there already", result.Known}, {"older than what is there", result.Outdated}, {"forgotten here before", result.Forgotten}} {
			if c.n > 0 {
				a.printf(", %s %s", c.name, text.Thousands(c.n))
			}
		}
		a.println()
	})
}

func (a *app) importInto(ctx context.Context, m *memories, file *os.File, r *memoryImported) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return unable(err)
	}
	progress := a.startCount("importing: %s memories")
	defer progress.stop()
	items := func(yield func(itemstore.Item, error) bool) {
		for item, err := range memoryLines(file) {
			progress.add()
			if !yield(item, err) {
				return
			}
		}
	}
	return m.open(ctx, a, itemstore.Options{}, func() (err error) {
		if r.Imported, err = m.Import(ctx, items); err != nil {
			return unable(fmt.Errorf("the import is not complete, and can be repeated: %w", oneLine{err}))
		}
		return nil
	})
}

// importFile copies anything but a regular file, so that it can be read twice.
func (a *app) importFile(name string) (file *os.File, done func() error, err error) {
	in := a.in
	if name != "-" {
		if file, err = openNamed(name); err != nil {
			return nil, nil, usagef("%s: %w", name, err)
		}
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			return file, file.Close, nil
		}
		defer func() { _ = file.Close() }() // it is copied
		in = file
	}
	copied, err := os.CreateTemp("", "grapnel-import-")
	if err != nil {
		return nil, nil, unable(noTemp(err))
	}
	done = func() error { return errors.Join(copied.Close(), os.Remove(copied.Name())) }
	if _, err = io.Copy(copied, in); err == nil {
		_, err = copied.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, nil, errors.Join(unable(fmt.Errorf("%s: %w", cmp.Or(words.If(name == "-", "standard input"), name), err)), done())
	}
	return copied, done, nil
}

const maxImportLine = 64 << 10 // holds a whole memory in escapes of six bytes a character

func memoryLines(r io.Reader) iter.Seq2[itemstore.Item, error] {
	return func(yield func(itemstore.Item, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxImportLine)
		for lines.Scan() {
			item, err := memoryLine(lines.Bytes())
			if !yield(item, err) || err != nil {
				return
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(itemstore.Item{}, fmt.Errorf("the line has more than %s bytes, which no memory has", text.Thousands(maxImportLine)))
		case err != nil:
			yield(itemstore.Item{}, err)
		}
	}
}

func memoryLine(line []byte) (itemstore.Item, error) {
	var item itemstore.Item
	err := jsonscan.Decode(line, &item)
	switch {
	case errors.Is(err, io.EOF):
		return item, errors.New("the line is empty")
	case err != nil:
		return item, fmt.Errorf("it is not a memory in JSON: %w", err)
	}
	return item, nil
}
