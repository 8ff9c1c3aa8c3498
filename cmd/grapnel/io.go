package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

const maxInput = 16 << 20

func inputName(flag, path string) string {
	if flag == "" {
		return path
	}
	return "--" + flag + " " + path
}

// readInput reads the file that a flag names, standard input for "-", and nothing for "".
func (a *app) readInput(flag, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	in := a.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, usagef("%s: %w", inputName(flag, path), unwrapPath(err))
		}
		defer f.Close() //nolint:errcheck // only read
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err != nil {
		return nil, usagef("%s: %w", inputName(flag, path), unwrapPath(err))
	}
	if len(data) > maxInput {
		return nil, usagef("%s: is larger than %d MiB", inputName(flag, path), maxInput>>20)
	}
	return data, nil
}

// readJSON is readInput for JSON: syntax errors have their position.
func (a *app) readJSON(flag, path string) ([]byte, error) {
	data, err := a.readInput(flag, path)
	if err != nil || len(bytes.TrimSpace(data)) == 0 {
		return nil, err
	}
	var value json.RawMessage
	if err := json.Unmarshal(data, &value); err != nil {
		syntax, ok := errors.AsType[*json.SyntaxError](err)
		if !ok {
			return nil, usagef("%s: %w", inputName(flag, path), err)
		}
		line, column := position(data, int(syntax.Offset))
		return nil, usagef("%s:%d:%d: %w", inputName(flag, path), line, column, err)
	}
	return data, nil
}

// position turns the offset behind a byte into its line and column, from 1.
func position(data []byte, offset int) (line, column int) {
	before := data[:max(0, min(offset, len(data))-1)]
	return bytes.Count(before, []byte{'\n'}) + 1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

func strictJSON(data []byte, v any) error {
	if err := jsonscan.Check(data, phases.MaxJSONDepth); err != nil {
		return err
	}
	if err := jsonscan.Decode(data, v); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

type contextFlags struct {
	dir                              string
	mode, profile                    string
	workspace, thread, turn, session string
	now                              string
}

func (f *contextFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.dir, "dir", "", "working `DIR` of the turn (default the current directory)")
	flags.StringVar(&f.profile, "profile", "", "how much is compiled: full, minimal or none (default full)")
	flags.StringVar(&f.mode, "mode", "", "mode of the turn: chat, agent, task, system or a word of the host's (default agent)")
	flags.StringVar(&f.workspace, "workspace", "", "workspace `ID` (default local)")
	flags.StringVar(&f.thread, "thread", "", "thread `ID` (default local)")
	flags.StringVar(&f.turn, "turn", "", "turn `ID` (default local)")
	flags.StringVar(&f.session, "session", "", "session `ID` (default none)")
	flags.StringVar(&f.now, "now", "", "the turn's clock, as `RFC3339` (default the real one)")
}

func (f *contextFlags) fill(c phases.Context) (phases.Context, error) {
	c.WorkspaceID = cmp.Or(f.workspace, c.WorkspaceID, "local")
	c.ThreadID = cmp.Or(f.thread, c.ThreadID, "local")
	c.TurnID = cmp.Or(f.turn, c.TurnID, "local")
	c.SessionID = cmp.Or(f.session, c.SessionID)
	c.Mode = cmp.Or(phases.Mode(f.mode), c.Mode)
	c.Profile = cmp.Or(phases.Profile(f.profile), c.Profile)
	c.Dir = cmp.Or(f.dir, c.Dir)
	c, err := api.Complete(c)
	if err != nil {
		return c, usagef("%w", err)
	}
	if f.now != "" {
		now, err := time.Parse(time.RFC3339, f.now)
		if err != nil {
			return c, usagef("--now %q: write a time such as 2026-01-31T12:00:00Z", f.now)
		}
		c.Now = now
	}
	return c, fillDir(&c)
}

// fillDir keeps symbolic links in the name, as os.Getwd believes $PWD.
func fillDir(c *phases.Context) error {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return usagef("the working directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return usagef("working directory %s: %w", c.Dir, unwrapPath(err))
	}
	if !info.IsDir() {
		return usagef("working directory %s: is not a directory", c.Dir)
	}
	c.Dir = dir
	return nil
}

// replaceFile writes the file beside its place and renames it.
func replaceFile(path string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".grapnel-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// unwrapPath drops the path of a path error, which the message already has.
func unwrapPath(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// confirm shows what will be removed and asks for consent. Without a terminal it is a usage error; "no" is [exitNo].
func (a *app) confirm(verb, participle string, count int, what string, show func()) error {
	nobody := usagef("there is nobody to ask whether %s may be %s; give --yes, or look first with --dry-run", what, participle)
	if !a.answers && !isTerminal(a.in) {
		return nobody
	}
	show()
	// Results are printed at the end; a question is not a result.
	reportf(a.err, "%s\n%s %s for good? [y/N] ", a.out.String(), strings.ToUpper(verb[:1])+verb[1:], plural(count, "it", what))
	a.out.Reset()
	line, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil && line == "" {
		reportf(a.err, "\n")
		return nobody // a device such as the null device
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return refused(fmt.Errorf("nothing was %s", participle))
	}
	return nil
}

// Long work shows its progress after progressAfter, and draws it anew every progressEvery.
const (
	progressAfter = 300 * time.Millisecond
	progressEvery = 100 * time.Millisecond
)

// startProgress shows a line on a terminal until stop is called. line may be called at any time.
func (a *app) startProgress(line func() string) (stop func()) {
	if !isTerminal(a.err) {
		return func() {}
	}
	return drawProgress(a.err, line)
}

func drawProgress(out io.Writer, line func() string) (stop func()) {
	const wipe = "\r\x1b[K"
	var mu sync.Mutex
	var timer *time.Timer
	var last string
	stopped := false
	draw := func() {
		mu.Lock()
		defer mu.Unlock()
		if stopped {
			return
		}
		if now := line(); now != last {
			reportf(out, wipe+"%s", now)
			last = now
		}
		timer.Reset(progressEvery)
	}
	mu.Lock()
	timer = time.AfterFunc(progressAfter, draw)
	mu.Unlock()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		timer.Stop()
		if last != "" && !stopped {
			reportf(out, wipe)
		}
		stopped = true
	}
}

// counter shows how much long work has done.
type counter struct {
	atomic.Int64

	stop func()
}

func (c *counter) add() { c.Add(1) }

// startCount begins a count; format has a place for it.
func (a *app) startCount(format string) *counter {
	c := &counter{}
	c.stop = a.startProgress(func() string { return fmt.Sprintf(format, text.Thousands(int(c.Load()))) })
	return c
}

// starting are the plugins that are still starting.
type starting struct {
	mu      sync.Mutex
	waiting map[string]bool
}

// showStarting shows them until stop is called.
func (a *app) showStarting(o *runtime.Options) (stop func()) {
	s := &starting{waiting: map[string]bool{}}
	others := o.OnEvent
	o.OnEvent = func(ev runtime.Event) {
		s.event(ev)
		if others != nil {
			others(ev)
		}
	}
	return a.startProgress(s.line)
}

func (s *starting) event(ev runtime.Event) {
	if ev.Kind != runtime.EventPlugin {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := phases.PluginState(ev.State); state == phases.PluginDeclared || state == phases.PluginStarting {
		s.waiting[ev.Plugin] = true
	} else {
		delete(s.waiting, ev.Plugin)
	}
}

func (s *starting) line() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch names := slices.Sorted(maps.Keys(s.waiting)); len(names) {
	case 0:
		return ""
	case 1:
		return "starting plugins: " + names[0]
	default:
		return fmt.Sprintf("starting plugins: %s and %d more", names[0], len(names)-1)
	}
}

// isTerminal reports whether w is a character device.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

const maxCell = 160 // bounds what a table shows of one text

const ruleWidth = 78

// print prints a result as JSON for programs, or as text for people.
func (a *app) print(v any, text func()) error {
	if a.json {
		return a.printJSON(v)
	}
	text()
	return nil
}

func (a *app) printJSON(v any) error {
	data, err := encodeJSON(v)
	if err != nil {
		return unable(fmt.Errorf("the result cannot be written as JSON: %w", err))
	}
	a.out.Write(data)
	return nil
}

// encodeJSON returns indented JSON without HTML escapes, which would turn every tag in a prompt into six characters.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return escapeJSON(b.Bytes()), err
}

// escapeJSON escapes characters that terminals obey and encoding/json does not escape, and invalid UTF-8.
func escapeJSON(data []byte) []byte {
	if utf8.Valid(data) && !bytes.ContainsFunc(data, obeyed) {
		return data
	}
	out := make([]byte, 0, len(data)+64)
	for _, r := range string(data) {
		if obeyed(r) {
			out = fmt.Appendf(out, `\u%04x`, r) // all are below U+FFFF
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// obeyed reports whether a terminal may act on a character or reorder others by it: control characters from DEL on,
// bidirectional controls, and the line breaks that only some readers know.
func obeyed(r rune) bool {
	return r >= 0x7f && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

func (a *app) printf(format string, args ...any) { fmt.Fprintf(&a.out, format, args...) }

func (a *app) println(words ...any) { fmt.Fprintln(&a.out, words...) }

// reportf writes to standard error, without characters that a terminal obeys.
func reportf(w io.Writer, format string, args ...any) {
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			args[i] = printable(arg)
		case error:
			args[i] = printable(arg.Error())
		}
	}
	_, _ = fmt.Fprintf(w, format, args...)
}

func rule(label string) string {
	line := "── " + label + " "
	return line + strings.Repeat("─", max(2, ruleWidth-text.Chars(line))) + "\n"
}

// clean makes foreign text safe for one line.
func clean(s string) string { return text.Sanitize(s, maxCell) }

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) || obeyed(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// table is rows in aligned columns. text/tabwriter cannot align some columns to the right and some to the left.
type table struct {
	title           string   // stands above; the number of rows is added to it
	header          []string // column names; empty prints no headings
	right, optional []bool
	rows            [][]string
}

// newTable takes columns separated by "|": ">" aligns one to the right, "?" omits it if no row has it.
func newTable(title, columns string) *table {
	t := &table{title: title}
	if columns == "" {
		return t
	}
	for name := range strings.SplitSeq(columns, "|") {
		name, optional := strings.CutPrefix(name, "?")
		name, right := strings.CutPrefix(name, ">")
		t.header, t.right, t.optional = append(t.header, name), append(t.right, right), append(t.optional, optional)
	}
	return t
}

type cells = []any

func printList[T any](a *app, title, columns string, list []T, row func(*T) cells) {
	t := newTable(title, columns)
	for i := range list {
		t.add(row(&list[i])...)
	}
	a.printTable(t)
}

func (t *table) add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = cell(c)
	}
	t.rows = append(t.rows, row)
}

// addSome adds a name with its value, unless that is empty.
func (t *table) addSome(name, value string) {
	if value != "" {
		t.add(name, value)
	}
}

const emptyCell = "-"

func cell(v any) string {
	if ms, ok := v.(float64); ok {
		return millis(ms)
	}
	return cmp.Or(clean(fmt.Sprint(v)), emptyCell)
}

// printFields prints names and values, one pair a line.
func (a *app) printFields(pairs ...any) {
	t := newTable("", "")
	for pair := range slices.Chunk(pairs, 2) {
		t.add(pair...)
	}
	a.printTable(t)
}

// printMore says how many rows a table does not show.
func (a *app) printMore(n int) {
	if n > 0 {
		a.printf("  and %s more\n", text.Thousands(n))
	}
}

func count(n int, one, many string) string { return text.Thousands(n) + " " + plural(n, one, many) }

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func textIf(condition bool, s string) string {
	if condition {
		return s
	}
	return ""
}

func millis(ms float64) string {
	switch {
	case ms == 0:
		return "0"
	case ms < 10:
		return fmt.Sprintf("%.2f", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f", ms)
	default:
		return fmt.Sprintf("%.0f", ms)
	}
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func (a *app) printTable(t *table) {
	if len(t.rows) == 0 {
		return
	}
	if t.title != "" {
		a.printf("\n%s (%d)\n", t.title, len(t.rows))
	}
	lines := t.rows
	if t.header != nil {
		lines = append([][]string{t.header}, t.rows...)
	}
	widths := widthsOf(lines)
	omitted := make([]bool, len(widths))
	for i, optional := range t.optional {
		omitted[i] = optional && !slices.ContainsFunc(t.rows, func(row []string) bool { return row[i] != emptyCell })
	}
	for _, row := range lines {
		var line strings.Builder
		for i, c := range row {
			pad := strings.Repeat(" ", widths[i]-text.Chars(c))
			switch {
			case omitted[i]:
			case t.header != nil && t.right[i]:
				line.WriteString("  " + pad + c)
			default:
				line.WriteString("  " + c + pad)
			}
		}
		a.println(strings.TrimRight(line.String(), " "))
	}
}

func widthsOf(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], text.Chars(c))
		}
	}
	return widths
}
