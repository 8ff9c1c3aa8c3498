package lazy

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// MaxBytes bounds an encoded state. It leaves a quarter of the 64 KiB that a host keeps of a plugin for other data.
const MaxBytes = 48 << 10

// Encode returns the state as JSON of at most [MaxBytes]. If it is longer, the encoded copy drops entries: first
// covered directories, then versions of files that are gone, older versions of others, the end of the queue, and
// versions that were delivered first; then the versions of the files farthest from the working directory. A path that
// is not valid UTF-8 is encoded as "base64:" and its bytes.
func Encode(s State) ([]byte, error) {
	s = s.Clone()
	for _, path := range s.paths() {
		*path = encodePath(*path)
	}
	data, err := json.Marshal(s)
	for err == nil && len(data) > MaxBytes {
		if !s.shrink() {
			return nil, fmt.Errorf("the state has %d bytes with nothing left to forget; at most %d are kept", len(data), MaxBytes)
		}
		data, err = json.Marshal(s)
	}
	return data, err
}

// Decode reads what [Encode] wrote. An unknown schema and malformed data are errors.
func Decode(data []byte) (State, error) {
	if len(data) > MaxBytes {
		return State{}, fmt.Errorf("the state has %d bytes; at most %d are kept", len(data), MaxBytes)
	}
	var head struct {
		Schema int `json:"schema"`
	}
	var s State
	err := json.Unmarshal(data, &head)
	if err == nil && head.Schema != Schema {
		return State{}, fmt.Errorf("the state has schema %d, and %d is known here", head.Schema, Schema)
	}
	if err == nil {
		s, err = decode(data)
	}
	if err != nil {
		return State{}, fmt.Errorf("the state is damaged: %w", err)
	}
	return s, nil
}

func decode(data []byte) (State, error) {
	var s State
	if err := jsonscan.Decode(data, &s); err != nil {
		return s, err
	}
	for _, path := range s.paths() {
		var err error
		if *path, err = decodePath(*path); err != nil {
			return s, err
		}
	}
	return s.Clone(), s.check()
}

func (s *State) check() error {
	for _, path := range []string{s.Root, s.Dir} {
		if path != "" && !filepath.IsAbs(path) || strings.Contains(path, "\x00") {
			return errors.New("the root or the working directory is not an absolute path")
		}
	}
	for i, v := range slices.Concat(s.Initial, s.Delivered) {
		if v.Path == "" || len(v.SHA256) != 64 || strings.Trim(v.SHA256, "0123456789abcdef") != "" || v.Size < 0 {
			return fmt.Errorf("entry %d is not a version of a file", i)
		}
	}
	return nil
}

func (s *State) paths() []*string {
	list := []*string{&s.Root, &s.Dir}
	for i := range s.Covered {
		list = append(list, &s.Covered[i])
	}
	for i := range s.Queue {
		list = append(list, &s.Queue[i])
	}
	for _, versions := range [][]Version{s.Initial, s.Delivered} {
		for i := range versions {
			list = append(list, &versions[i].Path, &versions[i].RealPath)
		}
	}
	return list
}

// pathPrefix marks a path that JSON cannot hold. No absolute path begins so.
const pathPrefix = "base64:"

func encodePath(path string) string {
	if utf8.ValidString(path) && !strings.HasPrefix(path, pathPrefix) {
		return path
	}
	return pathPrefix + base64.RawStdEncoding.EncodeToString([]byte(path))
}

func decodePath(form string) (string, error) {
	text, ok := strings.CutPrefix(form, pathPrefix)
	if !ok {
		return form, nil
	}
	path, err := base64.RawStdEncoding.DecodeString(text)
	return string(path), err
}

// shrink drops an eighth of the first list that has entries, in the order that [Encode] documents, and reports whether
// there was one.
func (s *State) shrink() bool {
	first := func(n int) int { return (n + 7) / 8 }
	switch {
	case len(s.Covered) > 0:
		s.Covered = s.Covered[first(len(s.Covered)):]
	case s.dropWorn():
	case len(s.Queue) > 0:
		s.Queue = s.Queue[:len(s.Queue)-first(len(s.Queue))]
	case len(s.Delivered) > 0:
		s.Delivered = s.Delivered[first(len(s.Delivered)):]
	case len(s.Initial) > 0:
		s.Initial = s.Initial[first(len(s.Initial)):]
	case len(s.Markers) > 0:
		s.Markers = s.Markers[:len(s.Markers)-first(len(s.Markers))]
	default:
		return false
	}
	return true
}

// dropWorn drops versions of files that are gone, and those with a later one. It reports whether there were any.
func (s *State) dropWorn() bool {
	before, last, i := len(s.Delivered), map[string]int{}, -1
	for i := range s.Delivered {
		last[s.Delivered[i].real()] = i
	}
	s.Delivered = slices.DeleteFunc(s.Delivered, func(v Version) bool {
		i++
		return v.Gone || last[v.real()] != i
	})
	return len(s.Delivered) < before
}
