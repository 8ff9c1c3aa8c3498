package runtime

import "slices"

// recent is a bounded map that forgets the keys that came first. It is not safe
// for concurrent use.
type recent[V any] struct {
	limit  int
	values map[string]V
	order  []string
}

// get returns the value of a key.
func (r *recent[V]) get(key string) (V, bool) {
	v, ok := r.values[key]
	return v, ok
}

// lookup is get for a key that is not a string yet, and need not become one.
func (r *recent[V]) lookup(key []byte) (V, bool) {
	v, ok := r.values[string(key)]
	return v, ok
}

// put sets the value of a key.
func (r *recent[V]) put(key string, v V) {
	if r.values == nil {
		r.values = map[string]V{}
	}
	if _, known := r.values[key]; !known {
		if len(r.order) >= r.limit {
			r.shift()
		}
		r.order = append(r.order, key)
	}
	r.values[key] = v
}

// shift forgets the key that came first and returns its value; false if there is
// none.
func (r *recent[V]) shift() (V, bool) {
	if len(r.order) == 0 {
		var none V
		return none, false
	}
	first := r.order[0]
	v := r.values[first]
	delete(r.values, first)
	r.order = r.order[1:]
	return v, true
}

// drop forgets a key.
func (r *recent[V]) drop(key string) {
	if _, known := r.values[key]; known {
		delete(r.values, key)
		r.order = slices.DeleteFunc(r.order, func(k string) bool { return k == key })
	}
}
