package store_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// strace prints a call that others interrupt in two lines.
var (
	traceLine = regexp.MustCompile(`^(\d+) +(.*)$`)
	traceCall = regexp.MustCompile(`(?s)^(\w+)\((.*)\) += (-?\d+|\?)`)
	traceFD   = regexp.MustCompile(`^\d+<(.*)>$`)
)

// parseTrace reads strace's output: the successful calls about files below a directory, in the
// order in which they returned, and writes to standard output.
func parseTrace(text []byte, root string) ([]diskOp, error) {
	var ops []diskOp
	begun := map[string]string{} // the unfinished call of each thread
	for line := range strings.Lines(string(text)) {
		parts := traceLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if parts == nil {
			return nil, fmt.Errorf("trace: %.200q", line)
		}
		thread, call := parts[1], parts[2]
		if head, ok := strings.CutSuffix(call, " <unfinished ...>"); ok {
			begun[thread] = head
			continue
		}
		if strings.HasPrefix(call, "<... ") {
			_, tail, _ := strings.Cut(call, " resumed>")
			call = begun[thread] + tail
		}
		if op, ok, err := parseCall(call, root); err != nil {
			return nil, fmt.Errorf("trace: %.200q: %w", call, err)
		} else if ok {
			ops = append(ops, op)
		}
	}
	return ops, nil
}

// parseCall reports false for a call that failed or does not matter.
func parseCall(call, root string) (op diskOp, ok bool, err error) {
	parts := traceCall.FindStringSubmatch(call)
	if parts == nil || strings.HasPrefix(parts[3], "-") || parts[3] == "?" {
		return op, false, nil
	}
	name, args, result := parts[1], strings.Split(parts[2], ", "), parts[3]
	if name == "write" && strings.HasPrefix(args[0], "1<") {
		return diskOp{kind: "print", data: []byte(unquote(args[1]))}, true, nil
	}
	switch name {
	case "write", "pwrite64", "ftruncate", "fsync", "fdatasync":
		if fd := traceFD.FindStringSubmatch(args[0]); fd != nil {
			op.path, ok = below(root, unquote(fd[1]))
		}
		if ok {
			err = op.parseFile(name, args, result)
		}
		return op, ok && err == nil, err
	}
	op, ok = parseName(name, args, root)
	return op, ok, nil
}

func parseName(name string, args []string, root string) (op diskOp, ok bool) {
	if at := strings.TrimSuffix(name, "2"); strings.HasSuffix(at, "at") { // our paths are absolute: directories do not matter
		name = strings.TrimSuffix(at, "at")
		args = slices.Delete(args, 0, 1)
		if name == "link" || name == "rename" {
			args = slices.Delete(args, 1, 2)
		}
	}
	op.kind = name
	if op.path, ok = below(root, unquote(args[0])); !ok {
		return op, false
	}
	switch name {
	case "open":
		op.kind, ok = "create", strings.Contains(args[1], "O_CREAT")
	case "link", "rename":
		op.to, ok = below(root, unquote(args[1]))
	case "unlink", "mkdir":
	default:
		ok = false
	}
	return op, ok
}

func below(root, path string) (string, bool) {
	rest, ok := strings.CutPrefix(filepath.Clean(path), root)
	return filepath.Clean("." + rest), ok && (rest == "" || rest[0] == '/')
}

func (op *diskOp) parseFile(name string, args []string, result string) (err error) {
	switch name {
	case "pwrite64":
		op.kind, op.data = "write", []byte(unquote(args[1]))
		if op.at, err = strconv.ParseInt(args[3], 10, 64); err == nil && strconv.Itoa(len(op.data)) != result {
			err = fmt.Errorf("%d bytes were traced of %s", len(op.data), result)
		}
	case "ftruncate":
		op.kind = "truncate"
		op.at, err = strconv.ParseInt(args[1], 10, 64)
	case "write":
		err = fmt.Errorf("a write without a place in %s", op.path)
	default:
		op.kind = "sync"
	}
	return err
}

// unquote decodes the escapes of a string with or without quotes.
func unquote(s string) string {
	s = strings.Trim(s, `"`)
	if text, err := strconv.Unquote(`"` + s + `"`); err == nil {
		return text
	}
	return s
}
