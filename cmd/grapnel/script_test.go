package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/rogpeppe/go-internal/testscript"
)

// scriptCommands are the commands of scripts besides those of testscript.
func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"exits":   cmdExits,
		"schema":  cmdSchema,
		"json":    cmdJSON,
		"sparse":  cmdSparse,
		"samekey": cmdSameKey,
		"nothing": cmdNothing,
		"program": cmdProgram,
	}
}

// longest is how long a script may wait for one command. Nothing should take a
// tenth of it where nothing else runs.
const longest = 3 * time.Minute

// lateStart is what commands say of a slow start. On a busy machine any is.
var lateStart = regexp.MustCompile(`(?m)^grapnel: still starting plugins: .*\n`)

// cmdExits is "exits CODE COMMAND [ARG]...": it runs a program, which must end
// with the code. Its output is in the files out and err.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG]...")
	}
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	path := args[1]
	if !strings.ContainsRune(path, filepath.Separator) {
		found, err := exec.LookPath(path)
		ts.Check(err)
		path = found
	}
	cmd := exec.CommandContext(ctx, path, args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "TZ", "PATH", "TMPDIR", "WORK", "GRAPNEL_CONFIG", "SECRET", "BIRD", "GORACE", "GOCOVERDIR", "CLAUDE_CONFIG_DIR"} {
		if v := ts.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	if in, err := os.ReadFile(ts.MkAbs("in")); err == nil {
		cmd.Stdin = bytes.NewReader(in)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	ts.Check(os.WriteFile(ts.MkAbs("out"), out.Bytes(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("err"), lateStart.ReplaceAll(errs.Bytes(), nil), 0o600))
	ts.Logf("[stdout]\n%s[stderr]\n%s", out.Bytes(), errs.Bytes())
	if ctx.Err() != nil {
		ts.Fatalf("%s did not end", strings.Join(args[1:], " "))
	}
	if cmd.ProcessState == nil {
		ts.Fatalf("%v", err)
	}
	if slices.Contains(args, "--json") && bytes.ContainsFunc(out.Bytes(), obeyed) || bytes.ContainsFunc(errs.Bytes(), obeyed) {
		ts.Fatalf("a terminal would obey a character of it")
	}
	if code := strconv.Itoa(cmd.ProcessState.ExitCode()); code != args[0] {
		ts.Fatalf("exit code %s, want %s", code, args[0])
	}
}

// cmdSchema is "schema NAME [FILE]": a JSON file (default out) must fit what
// "grapnel schema NAME" prints.
func cmdSchema(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 1 {
		args = append(args, "out")
	}
	resolved, err := resolvedSchema(args[0])
	ts.Check(err)
	var value any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &value))
	if err := resolved.Validate(value); (err == nil) == neg {
		ts.Fatalf("%s against the schema %s: %v", args[1], args[0], err)
	}
}

// commandSchemas are those that the command line has.
func commandSchemas() []namedSchema {
	a := &app{}
	a.root()
	return a.schemas()
}

// resolvedSchema makes a schema by name.
func resolvedSchema(name string) (*jsonschema.Resolved, error) {
	for _, entry := range commandSchemas() {
		if entry.name != name {
			continue
		}
		made, err := entry.schema()
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(made)
		if err != nil {
			return nil, err
		}
		var s jsonschema.Schema
		if err := json.Unmarshal(data, &s); err != nil {
			return nil, err
		}
		return s.Resolve(nil)
	}
	return nil, fmt.Errorf("no schema %q", name)
}

// cmdJSON is "json PATH WANT [FILE]": the value at a path of keys and indexes in
// a JSON file (default out) must be WANT, as JSON or as a bare text. A path that
// is not there is "absent"; "#" at the end of a path is the length of a list.
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 2 {
		args = append(args, "out")
	}
	var value any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[2])), &value))
	got := lookUp(value, args[0])
	if (got == args[1]) == neg {
		ts.Fatalf("%s is %s, want %s", args[0], got, args[1])
	}
}

// lookUp walks into decoded JSON. Keys are separated by blanks, because ids have
// dots.
func lookUp(value any, path string) string {
	for word := range strings.FieldsSeq(path) {
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[word]
			if !ok {
				return "absent"
			}
			value = next
		case []any:
			if word == "#" {
				return strconv.Itoa(len(v))
			}
			i := 0
			if _, err := fmt.Sscan(word, &i); err != nil || i >= len(v) {
				return "absent"
			}
			value = v[i]
		default:
			return "absent"
		}
	}
	if s, ok := value.(string); ok {
		return s
	}
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// cmdSparse is "sparse FILE MIB": a file of that size that takes no room.
func cmdSparse(ts *testscript.TestScript, _ bool, args []string) {
	var mib int64
	_, err := fmt.Sscan(args[1], &mib)
	ts.Check(err)
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(f.Truncate(mib << 20))
	ts.Check(f.Close())
}

// cmdSameKey is "samekey PATH FILE FILE": both JSON files have the same value
// there.
func cmdSameKey(ts *testscript.TestScript, neg bool, args []string) {
	var values [2]string
	for i, name := range args[1:] {
		var value any
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(name)), &value))
		values[i] = lookUp(value, args[0])
	}
	if values[0] == "absent" || (values[0] == values[1]) == neg {
		ts.Fatalf("%s: %s and %s", args[0], values[0], values[1])
	}
}

// cmdNothing is "nothing FILE": the file is empty.
func cmdNothing(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		if text := ts.ReadFile(name); (text == "") == neg {
			ts.Fatalf("%s: %q", name, text)
		}
	}
}

// cmdProgram is "program FILE": a shell script out of the archive is made
// executable.
func cmdProgram(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		ts.Check(os.Chmod(ts.MkAbs(name), 0o700))
	}
}
