package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/plugins/memory/itemstore"
)

// memoryImported is the JSON of memory import.
type memoryImported struct {
	itemstore.Imported

	Lines  int  `json:"lines"   jsonschema:"how many memories the file has"`
	DryRun bool `json:"dry_run"`
}

// memoryImportCommand reads what export wrote.
func (a *app) memoryImportCommand() *cobra.Command {
	var f memoryFlags
	var dry bool
	c := &cobra.Command{
		Use:   "import FILE|-",
		Short: "Add memories from JSON lines, as export writes them",
		Long: "Import adds the memories of FILE (- is standard input), each to the workspace that its line\n" +
			"names. What is there already stays as it is, and the newer of two answers to one question\n" +
			"wins, so that importing twice changes nothing. What was forgotten here stays forgotten.\n\n" +
			"All lines are checked first: with a line that is wrong nothing is imported, and the exit\n" +
			"code is 2.",
		Example: "  grapnel memory import memories.jsonl\n" +
			"  grapnel memory export | grapnel memory import - --memory sqlite:other.db",
		Args: exactlyOne("import takes one FILE, or - for standard input"),
		RunE: func(c *cobra.Command, args []string) error { return a.memoryImport(c.Context(), &f, args[0], dry) },
	}
	f.register(c)
	c.Flags().BoolVar(&dry, "dry-run", false, "check the lines, and import nothing")
	return c
}

// memoryImport reads the file twice: to check it, and to import it.
func (a *app) memoryImport(ctx context.Context, f *memoryFlags, name string, dry bool) (err error) {
	place, err := a.memoryPlace(f)
	if err != nil {
		return err
	}
	file, done, err := a.importFile(name)
	if err != nil {
		return err
	}
	defer func() { err = firstOf(err, done()) }()
	result := memoryImported{DryRun: dry}
	for item, err := range memoryLines(file) {
		if err == nil {
			err = item.Check()
		}
		if err != nil {
			return usagef("%s:%d: %w; nothing was imported", importName(name), result.Lines+1, oneLine{err})
		}
		result.Lines++
	}
	if !dry {
		if err := a.importInto(ctx, place, file, &result); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(result)
	}
	a.printImported(&result, place)
	return nil
}

// importInto imports a file whose lines are known to be right.
func (a *app) importInto(ctx context.Context, place *memoryPlace, file *os.File, r *memoryImported) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return unable(err)
	}
	progress := a.newTally("importing: %s memories")
	defer progress.stop()
	items := func(yield func(itemstore.Item, error) bool) {
		for item, err := range memoryLines(file) {
			progress.add()
			if !yield(item, err) {
				return
			}
		}
	}
	return a.withMemory(ctx, place, itemstore.Options{}, func(s *itemstore.Store) (err error) {
		if r.Imported, err = s.Import(ctx, items); err != nil {
			return unable(fmt.Errorf("the import is not complete, and can be repeated: %w", oneLine{err}))
		}
		return nil
	})
}

// importName is how the input is called in messages.
func importName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

// importFile opens the input so that it can be read twice: what is no regular file is
// copied into one that goes away with done.
func (a *app) importFile(name string) (file *os.File, done func() error, err error) {
	in := a.in
	if name != "-" {
		if file, err = os.Open(name); err != nil {
			return nil, nil, usagef("%s: %w", name, unwrapPath(err))
		}
		info, err := file.Stat()
		switch {
		case err == nil && info.Mode().IsRegular():
			return file, file.Close, nil
		case err == nil && info.IsDir():
			_ = file.Close() // only looked at
			return nil, nil, usagef("%s: is a folder", name)
		}
		defer func() { _ = file.Close() }() // it is copied
		in = file
	}
	copied, err := os.CreateTemp("", "grapnel-import-")
	if err != nil {
		return nil, nil, unable(err)
	}
	done = func() error { return errors.Join(copied.Close(), os.Remove(copied.Name())) }
	if _, err = io.Copy(copied, in); err == nil {
		_, err = copied.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, nil, errors.Join(unable(fmt.Errorf("%s: %w", importName(name), err)), done())
	}
	return copied, done, nil
}

// maxImportLine is what a line can have: a whole memory in escapes of six bytes a
// character, and names.
const maxImportLine = 64 << 10

// memoryLines are the memories of a file, one a line, read strictly. The first error
// ends them.
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

// memoryLine reads one line.
func memoryLine(line []byte) (itemstore.Item, error) {
	var item itemstore.Item
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	switch err := dec.Decode(&item); {
	case errors.Is(err, io.EOF):
		return item, errors.New("the line is empty")
	case err != nil:
		return item, fmt.Errorf("it is no memory in JSON: %w", err)
	case dec.More():
		return item, errors.New("there is more than one value in the line")
	}
	return item, nil
}

// printImported prints for people what became of the lines.
func (a *app) printImported(r *memoryImported, place *memoryPlace) {
	if r.DryRun {
		a.printf("the lines of %s are right; nothing was imported into %s\n", memories(r.Lines), clean(place.name))
		return
	}
	a.printf("imported %s into %s", memories(r.Added+r.Replaced), clean(place.name))
	for _, c := range []struct {
		name string
		n    int
	}{{"new", r.Added}, {"new in place of older ones", r.Replaced}, {"there already", r.Known}, {"older than what is there", r.Outdated}, {"forgotten here before", r.Forgotten}} {
		if c.n > 0 {
			a.printf(", %s %s", c.name, text.Thousands(c.n))
		}
	}
	a.println()
}
