package digest

import "unicode/utf8"

// isCanonical reports whether raw is certainly its own canonical form. It may
// say no of a canonical text (it does not judge fractions, exponents, integers
// of more than 15 digits or \u escapes), never yes of another one. It saves
// the common cases the tree that jcs builds: schemas that were canonical when
// they were recorded, flags, short numbers, plain strings.
func isCanonical(raw []byte) bool {
	s := scanner{raw: raw}
	return s.value(0) && s.pos == len(raw)
}

// scanner walks over JSON text. Each method moves pos past what it accepts and
// returns false, leaving pos anywhere, for what it does not.
type scanner struct {
	raw []byte
	pos int
}

// peek returns the next byte, or 0 at the end: no value begins with it.
func (s *scanner) peek() byte {
	if s.pos < len(s.raw) {
		return s.raw[s.pos]
	}
	return 0
}

// take moves past c if it is next.
func (s *scanner) take(c byte) bool {
	if s.peek() != c || s.pos >= len(s.raw) {
		return false
	}
	s.pos++
	return true
}

// value accepts any value; depth is the number of containers around it.
func (s *scanner) value(depth int) bool {
	switch c := s.peek(); c {
	case '{':
		return depth < MaxDepth && s.object(depth+1)
	case '[':
		return depth < MaxDepth && s.array(depth+1)
	case '"':
		_, ok := s.text()
		return ok
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.integer()
	}
}

// object accepts members in strictly rising order of names, which also rules
// out duplicates. Names with escapes are left to jcs: their order is not the
// order of their bytes.
func (s *scanner) object(depth int) bool {
	s.pos++
	if s.take('}') {
		return true
	}
	var previous []byte
	for first := true; ; first = false {
		if s.peek() != '"' {
			return false
		}
		begin := s.pos + 1
		plain, ok := s.text()
		if !ok || !plain {
			return false
		}
		name := s.raw[begin : s.pos-1]
		if !first && compareUTF16(previous, name) >= 0 {
			return false
		}
		previous = name
		if !s.take(':') || !s.value(depth) {
			return false
		}
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// array accepts elements in any order: theirs is data.
func (s *scanner) array(depth int) bool {
	s.pos++
	if s.take(']') {
		return true
	}
	for {
		if !s.value(depth) {
			return false
		}
		if s.take(']') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// text accepts a string whose escapes are the two-character ones that RFC 8785
// prescribes; plain says that there was none.
func (s *scanner) text() (plain, ok bool) {
	s.pos++
	begin := s.pos
	plain = true
	for {
		s.pos += plainLen(s.raw[s.pos:])
		switch s.peek() {
		case '"':
			s.pos++
			return plain, utf8.Valid(s.raw[begin : s.pos-1])
		case '\\':
			plain = false
			s.pos++
			switch s.peek() {
			case '"', '\\', 'b', 'f', 'n', 'r', 't':
				s.pos++
			default:
				return false, false
			}
		default:
			return false, false // a bare control character, or the end
		}
	}
}

// word accepts one of the three literals.
func (s *scanner) word(w string) bool {
	if len(s.raw)-s.pos < len(w) || string(s.raw[s.pos:s.pos+len(w)]) != w {
		return false
	}
	s.pos += len(w)
	return true
}

// integer accepts what every double holds exactly and prints the same way. A
// fraction or exponent that follows fails at the caller, who expects a comma,
// a bracket or the end there.
func (s *scanner) integer() bool {
	const maxDigits = 15
	if s.take('-') && s.peek() == '0' {
		return false // -0 is printed as 0
	}
	begin := s.pos
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.pos++
	}
	digits := s.pos - begin
	return digits == 1 || digits > 1 && digits <= maxDigits && s.raw[begin] != '0'
}
