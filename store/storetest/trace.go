package storetest

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// What strace prints. A call that others interrupt has two lines.
var (
	traceLine  = regexp.MustCompile(`^(\d+) +(.*)$`)
	traceCall  = regexp.MustCompile(`(?s)^(\w+)\((.*)\) += (-?\d+|\?)`)
	traceFD    = regexp.MustCompile(`^(\d+|AT_FDCWD)(?:<(.*)>)?$`)
	unfinished = " <unfinished ...>"
)

// parseTrace reads strace's output: the calls that succeeded and are about files below
// a directory, in the order in which they returned, and writes to standard output.
func parseTrace(text []byte, root string) ([]diskOp, error) {
	var ops []diskOp
	begun := map[string]string{} // of each thread, the call that has not returned
	for line := range strings.Lines(string(text)) {
		parts := traceLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if parts == nil {
			return nil, fmt.Errorf("trace: %.200q", line)
		}
		thread, call := parts[1], parts[2]
		if head, ok := strings.CutSuffix(call, unfinished); ok {
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

// parseCall reads one call. It reports false for one that failed or does not matter.
func parseCall(call, root string) (op diskOp, ok bool, err error) {
	parts := traceCall.FindStringSubmatch(call)
	if parts == nil || strings.HasPrefix(parts[3], "-") || parts[3] == "?" {
		return op, false, nil
	}
	name, args, result := parts[1], strings.Split(parts[2], ", "), parts[3]
	inside := func(path string) (string, bool) {
		rest, ok := strings.CutPrefix(filepath.Clean(path), root)
		return filepath.Clean("." + rest), ok && (rest == "" || rest[0] == '/')
	}
	if strings.HasSuffix(name, "at") && name != "pwrite64" || name == "renameat2" { // our paths are absolute
		args = append(args[1:2:2], args[2:]...)
		if len(args) > 2 && (name == "linkat" || strings.HasPrefix(name, "renameat")) {
			args = append(args[:1:1], args[2:]...)
		}
		name = strings.TrimSuffix(strings.TrimSuffix(name, "2"), "at")
	}
	switch name {
	case "write", "pwrite64", "ftruncate", "fsync", "fdatasync":
		fd := traceFD.FindStringSubmatch(args[0])
		if fd == nil {
			return op, false, nil
		}
		if op.path, ok = inside(unhex(fd[2])); name == "write" && fd[1] == "1" {
			return diskOp{kind: "print", data: []byte(unquote(args[1]))}, true, nil
		}
		if !ok {
			return op, false, nil
		}
		err = op.parseFile(name, args, result)
		return op, err == nil, err
	case "open", "link", "rename", "unlink", "mkdir":
		op.kind = name
		if op.path, ok = inside(unquote(args[0])); !ok {
			return op, false, nil
		}
		if name == "open" {
			op.kind = "create"
			return op, strings.Contains(args[1], "O_CREAT"), nil
		}
		if name == "link" || name == "rename" {
			op.to, ok = inside(unquote(args[1]))
		}
		return op, ok, nil
	}
	return op, false, nil
}

// parseFile reads a call about an open file.
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

// unquote reads a string of \xNN in quotes.
func unquote(s string) string { return unhex(strings.Trim(s, `"`)) }

// unhex reads \xNN, and leaves everything else.
func unhex(s string) string {
	if !strings.Contains(s, `\x`) {
		return s
	}
	out := make([]byte, 0, len(s)/4)
	for i := 0; i < len(s); {
		if s[i] == '\\' && i+3 < len(s) && s[i+1] == 'x' {
			if n, err := strconv.ParseUint(s[i+2:i+4], 16, 8); err == nil {
				out = append(out, byte(n))
				i += 4
				continue
			}
		}
		out = append(out, s[i])
		i++
	}
	return string(out)
}
