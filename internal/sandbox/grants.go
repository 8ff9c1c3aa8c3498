package sandbox

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// FromGrants makes a policy of what a configuration grants; the limits stay
// zero. Each list may be nil, which grants nothing.
//
//   - read, write: absolute paths; "/a/*" is "/a", "*" is everything
//   - net: "*" is everything; "*:443" allows TCP connections to a port on any
//     machine, "listen:8080" to listen on one
//
// An entry that the system cannot enforce as written, such as the name of one
// machine, is an error: what would be in force would be weaker than that.
func FromGrants(read, write, net []string) (Policy, error) {
	var p Policy
	var err error
	if p.Read, err = paths(read); err != nil {
		return Policy{}, err
	}
	if p.Write, err = paths(write); err != nil {
		return Policy{}, err
	}
	for _, entry := range net {
		if err := p.Net.add(entry); err != nil {
			return Policy{}, err
		}
	}
	return p, p.Validate()
}

// paths turns granted patterns into paths.
func paths(entries []string) ([]string, error) {
	var list []string
	for _, entry := range entries {
		path, wild := strings.CutSuffix(entry, "*")
		switch {
		case wild && path == "":
			path = "/"
		case wild && !strings.HasSuffix(path, "/"):
			return nil, fmt.Errorf("grant %q: the sandbox knows files and whole folders; write the folder, or %q", entry, filepath.Dir(path)+"/*")
		case !filepath.IsAbs(path):
			return nil, fmt.Errorf("grant %q is not an absolute path", entry)
		}
		list = append(list, filepath.Clean(path))
	}
	return list, nil
}

// add grants one entry.
func (n *Net) add(entry string) error {
	if entry == "*" {
		n.All = true
		return nil
	}
	// The last colon: an address of the sixth version holds others.
	i := strings.LastIndexByte(entry, ':')
	if i < 0 {
		return fmt.Errorf(`grant %q: write "*", "*:PORT" or "listen:PORT"`, entry)
	}
	port, err := strconv.ParseUint(entry[i+1:], 10, 16)
	if err != nil || port == 0 {
		return fmt.Errorf("grant %q: %q is no port", entry, entry[i+1:])
	}
	switch entry[:i] {
	case "*":
		n.Connect = append(n.Connect, uint16(port))
	case "listen":
		n.Listen = append(n.Listen, uint16(port))
	default:
		return fmt.Errorf(`grant %q: the sandbox knows ports and not machines; "*:%d" allows this port on all of them`, entry, port)
	}
	return nil
}
