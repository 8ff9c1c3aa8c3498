package lazy

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxBytes is the longest encoded state. It leaves a quarter of the 64 KiB that
// a host keeps of a plugin to what stands beside it.
const MaxBytes = 48 << 10

// Encode returns the state as JSON of at most [MaxBytes]. Where it is longer,
// the copy that is encoded forgets: first folders that were covered, then
// versions of files that are gone, older versions of others, the end of the
// queue, and versions that were delivered first; then what the files farthest
// from the working folder were. A path that is not valid UTF-8 stands in JSON as
// "base64:" and its bytes, so that all paths come back as they were.
func Encode(s State) ([]byte, error) {
	s = s.Clone()
	data, err := s.marshal()
	for err == nil && len(data) > MaxBytes {
		before := len(data)
		s.shrink(before - MaxBytes)
		if data, err = s.marshal(); len(data) == before {
			return nil, fmt.Errorf("the state has %d bytes with nothing left to forget; at most %d are kept", before, MaxBytes)
		}
	}
	return data, err
}

// marshal is the JSON of the state, however long.
func (s *State) marshal() ([]byte, error) {
	c := s.Clone()
	for _, path := range c.paths() {
		*path = encodePath(*path)
	}
	return json.Marshal(c)
}

// Decode reads what [Encode] wrote. An unknown schema, and anything that Encode
// cannot have written, is an error that says what is wrong.
func Decode(data []byte) (State, error) {
	if len(data) > MaxBytes {
		return State{}, fmt.Errorf("the state has %d bytes; at most %d are kept", len(data), MaxBytes)
	}
	var head struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return State{}, fmt.Errorf("the state is damaged: %w", err)
	}
	if head.Schema != Schema {
		return State{}, fmt.Errorf("the state has schema %d, and %d is known here", head.Schema, Schema)
	}
	s, err := decode(data)
	if err != nil {
		return State{}, fmt.Errorf("the state is damaged: %w", err)
	}
	return s, nil
}

// decode reads a state of this schema.
func decode(data []byte) (State, error) {
	var s State
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return s, errors.New("there is more behind it")
	}
	for _, path := range s.paths() {
		var err error
		if *path, err = decodePath(*path); err != nil {
			return s, err
		}
	}
	return s.Clone(), s.check()
}

// check says what is wrong with a state.
func (s *State) check() error {
	for _, path := range []string{s.Root, s.Dir} {
		if path != "" && !filepath.IsAbs(path) || strings.Contains(path, "\x00") {
			return errors.New("the root or the working folder is no absolute path")
		}
	}
	for _, list := range [][]Version{s.Initial, s.Delivered} {
		for i := range list {
			if v := &list[i]; v.Path == "" || !isSum(v.SHA256) || v.Size < 0 {
				return fmt.Errorf("entry %d is no version of a file", i)
			}
		}
	}
	return nil
}

// isSum reports whether a text is a SHA-256 in hex.
func isSum(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// paths are the fields that are paths.
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

// pathPrefix begins what stands for a path that JSON cannot hold. No absolute
// path begins so.
const pathPrefix = "base64:"

// encodePath is the form of a path in JSON.
func encodePath(path string) string {
	if utf8.ValidString(path) && !strings.HasPrefix(path, pathPrefix) {
		return path
	}
	return pathPrefix + base64.RawStdEncoding.EncodeToString([]byte(path))
}

// decodePath is the path of a form.
func decodePath(form string) (string, error) {
	text, ok := strings.CutPrefix(form, pathPrefix)
	if !ok {
		return form, nil
	}
	path, err := base64.RawStdEncoding.DecodeString(text)
	return string(path), err
}

// shrink forgets so many bytes of JSON, or a little more, in the order that
// [Encode] tells, and not more than there is.
func (s *State) shrink(need int) {
	s.Covered = drop(s.Covered, &need, pathSize, always)
	s.dropWorn(&need)
	s.Queue = dropLast(s.Queue, &need)
	s.Delivered = drop(s.Delivered, &need, Version.size, always)
	s.Initial = drop(s.Initial, &need, Version.size, always)
	s.Markers = dropLast(s.Markers, &need)
}

// dropWorn drops versions of files that are gone, and those with a later one.
func (s *State) dropWorn(need *int) {
	s.Delivered = drop(s.Delivered, need, Version.size, func(_ int, v Version) bool { return v.Gone })
	last := map[string]int{}
	for i := range s.Delivered {
		last[s.Delivered[i].real()] = i
	}
	s.Delivered = drop(s.Delivered, need, Version.size, func(i int, v Version) bool { return last[v.real()] != i })
}

// forgetOne drops the version that matters least.
func (s *State) forgetOne() {
	need := 1
	s.dropWorn(&need)
	s.Delivered = drop(s.Delivered, &need, Version.size, always)
}

// drop drops entries that may be, the first ones, as long as there is need.
func drop[T any](list []T, need *int, size func(T) int, may func(int, T) bool) []T {
	i := -1
	return slices.DeleteFunc(list, func(v T) bool {
		i++
		if *need <= 0 || !may(i, v) {
			return false
		}
		*need -= size(v)
		return true
	})
}

// always lets any entry be dropped.
func always[T any](int, T) bool { return true }

// dropLast is drop from the end.
func dropLast(list []string, need *int) []string {
	slices.Reverse(list)
	list = drop(list, need, pathSize, always)
	slices.Reverse(list)
	return list
}

// size is how many bytes of JSON the version takes up in a list.
func (v Version) size() int {
	v.Path, v.RealPath = encodePath(v.Path), encodePath(v.RealPath)
	return jsonSize(v)
}

// pathSize is how many bytes of JSON a path takes up in a list.
func pathSize(path string) int { return jsonSize(encodePath(path)) }

// jsonSize is the length of a value and a comma.
func jsonSize(v any) int {
	data, err := json.Marshal(v)
	if err != nil {
		return 1 // cannot be: these are strings and numbers
	}
	return len(data) + 1
}
