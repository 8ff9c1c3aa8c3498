package rpc

import "bytes"

// fewNames is up to how many names a nameSet compares one by one.
const fewNames = 16

// nameSet are the names of one object. The zero value is empty.
type nameSet struct {
	few  [fewNames][]byte // quoted, as they stand in the text, without escapes
	n    int
	many map[string]struct{} // unquoted; nil while there are few
}

// add adds a quoted name, and reports whether it is new.
func (s *nameSet) add(quoted []byte) bool {
	if s.many == nil && plain(quoted) && s.n < fewNames {
		for _, name := range s.few[:s.n] {
			if bytes.Equal(name, quoted) {
				return false
			}
		}
		s.few[s.n] = quoted
		s.n++
		return true
	}
	if s.many == nil {
		s.spill()
	}
	name := unquote(quoted)
	if _, there := s.many[name]; there {
		return false
	}
	s.many[name] = struct{}{}
	return true
}

// spill turns to a map: there are many names, or two may be written differently.
func (s *nameSet) spill() {
	s.many = make(map[string]struct{}, 2*fewNames)
	for _, name := range s.few[:s.n] {
		s.many[unquote(name)] = struct{}{}
	}
}
