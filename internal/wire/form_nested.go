package wire

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// open reserves one byte for the length of what follows.
func (f *form) open() int {
	f.out = append(f.out, 0)
	return len(f.out)
}

// close writes the length, and moves the content if that takes more than one byte.
func (f *form) close(mark int) {
	size := len(f.out) - mark
	if size < 0x80 {
		f.out[mark-1] = byte(size) //nolint:gosec // below 0x80
		return
	}
	extra := protowire.SizeVarint(uint64(size)) - 1
	for range extra {
		f.out = append(f.out, 0)
	}
	copy(f.out[mark+extra:], f.out[mark:mark+size])
	protowire.AppendVarint(f.out[:mark-1], uint64(size))
}

// put writes a message, even an empty one.
func put[T any](f *form, n protowire.Number, m *T, fields func(*form, *T)) {
	f.out = protowire.AppendTag(f.out, n, protowire.BytesType)
	mark := f.open()
	fields(f, m)
	f.close(mark)
}

func take[T any](f *form, m *T, fields func(*form, *T)) {
	within(f, f.s, m, fields)
	f.next()
}

// sub is a message held by value: absent when empty.
func sub[T any](f *form, n protowire.Number, m *T, fields func(*form, *T)) {
	if f.writing {
		before := len(f.out)
		put(f, n, m, fields)
		if len(f.out) == before+protowire.SizeTag(n)+1 {
			f.out = f.out[:before]
		}
	} else if f.has(n) {
		take(f, m, fields)
	}
}

// ptr is a message held by pointer: absent when nil.
func ptr[T any](f *form, n protowire.Number, p **T, fields func(*form, *T)) {
	if f.writing {
		if *p != nil {
			put(f, n, *p, fields)
		}
	} else if f.has(n) {
		if *p == nil {
			*p = new(T)
		}
		take(f, *p, fields)
	}
}

func each[T any](f *form, n protowire.Number, p *[]T, fields func(*form, *T)) {
	if f.writing {
		for i := range *p {
			put(f, n, &(*p)[i], fields)
		}
		return
	}
	for f.has(n) {
		*p = append(*p, *new(T))
		take(f, &(*p)[len(*p)-1], fields)
	}
}

func list[S ~string](f *form, n protowire.Number, p *[]S) {
	if f.writing {
		for _, s := range *p {
			f.putText(n, string(s))
		}
		return
	}
	for f.has(n) {
		*p = append(*p, S(f.takeText()))
	}
}

// optional is a bool with a third state, absent.
func (f *form) optional(n protowire.Number, p **bool) {
	if f.writing {
		if *p != nil {
			f.putNumber(n, protowire.EncodeBool(**p))
		}
	} else if f.hasNumber(n) {
		*p = new(f.u != 0)
		f.next()
	}
}

// entry is a map entry, a message of key and value.
type entry[V any] struct {
	key   string
	value V
}

// pairs is a map; value is the field function of its values.
func pairs[K ~string, V any](f *form, n protowire.Number, p *map[K]V, value func(*form, protowire.Number, *V)) {
	fields := func(f *form, e *entry[V]) {
		f.text(1, &e.key)
		value(f, 2, &e.value)
	}
	if f.writing {
		for k, v := range *p {
			put(f, n, &entry[V]{string(k), v}, fields)
		}
		return
	}
	for f.has(n) {
		var e entry[V]
		take(f, &e, fields)
		if *p == nil {
			*p = map[K]V{}
		}
		(*p)[K(e.key)] = e.value
	}
}

// textValue is the field function of a map's texts.
func textValue[S ~string](f *form, n protowire.Number, p *S) {
	s := string(*p)
	f.text(n, &s)
	*p = S(s)
}
