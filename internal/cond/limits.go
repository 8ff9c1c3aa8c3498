package cond

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/grapnelhq/grapnel/phases"
)

// Bounds of conditions and of what is handed to them.
const (
	// MaxSource is the longest source, in bytes.
	MaxSource = 4096
	// MaxNodes is the most nodes of a parsed condition.
	MaxNodes = 256
	// MaxItems is the most entries of a list that is read, and of a range.
	MaxItems = 1000
	// MaxBytes is the most that one value may weigh that is read: the bytes of
	// its texts, and 16 for each entry of its lists and objects.
	MaxBytes = 64 << 10
	// MaxJSON is the most bytes of embedded JSON that are decoded to read a
	// value in it.
	MaxJSON = 1 << 20

	// entryBytes is what an entry of a list or an object weighs by itself.
	entryBytes = 16
	// maxNanos is the longest time that a condition may take by the reckoning
	// of costs.go.
	maxNanos = 100e6
)

// decode turns embedded JSON into plain values; absent JSON is nil. The engine
// has checked its inputs before, but policies and tests come from elsewhere.
func decode(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if len(raw) > MaxJSON {
		return nil, fmt.Errorf("is JSON of %d bytes; conditions look into at most %d", len(raw), MaxJSON)
	}
	if err := phases.CheckJSON(raw, phases.MaxJSONDepth); err != nil {
		return nil, err
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	return v, nil
}

// checkSize refuses a value that weighs too much or holds too long a list.
func checkSize(v any) error {
	weight, err := weigh(v, 0)
	if err == nil && weight > MaxBytes {
		err = tooHeavy(weight)
	}
	return err
}

// weigh adds up a value's weight and stops where a bound is passed.
func weigh(v any, weight int) (int, error) {
	switch v := v.(type) {
	case string:
		return weight + len(v), nil
	case []string:
		if err := checkItems(len(v)); err != nil {
			return 0, err
		}
		for _, s := range v {
			weight += entryBytes + len(s)
		}
		return weight, nil
	case []any:
		if err := checkItems(len(v)); err != nil {
			return 0, err
		}
		for _, entry := range v {
			var err error
			if weight, err = weighEntry(entry, weight); err != nil {
				return 0, err
			}
		}
		return weight, nil
	case map[string]any:
		for name, entry := range v {
			var err error
			if weight, err = weighEntry(entry, weight+len(name)); err != nil {
				return 0, err
			}
		}
		return weight, nil
	default:
		return weight + entryBytes, nil
	}
}

// weighEntry adds one entry and stops as soon as the bound is passed, so that
// weighing is no work without bounds itself.
func weighEntry(v any, weight int) (int, error) {
	if weight += entryBytes; weight > MaxBytes {
		return 0, tooHeavy(weight)
	}
	return weigh(v, weight)
}

func tooHeavy(weight int) error {
	return fmt.Errorf("weighs %d bytes or more; conditions read at most %d", weight, MaxBytes)
}

// checkItems refuses lists that are too long.
func checkItems(n int) error {
	if n > MaxItems {
		return fmt.Errorf("is a list of %d entries; conditions read at most %d", n, MaxItems)
	}
	return nil
}

// span is the operator ".." where its ends are not constants.
func span(from, to any) (any, error) {
	a, okA := whole(from)
	b, okB := whole(to)
	switch {
	case !okA || !okB:
		return nil, fmt.Errorf("a range goes from one whole number to another, not from %s to %s", typeName(from), typeName(to))
	case b < a:
		return []int{}, nil
	case a <= math.MaxInt-MaxItems && b >= a+MaxItems: // the distance itself need not fit into an int
		return nil, fmt.Errorf("the range %d..%d is longer than %d", a, b, MaxItems)
	}
	list := make([]int, b-a+1)
	for i := range list {
		list[i] = a + i
	}
	return list, nil
}

// whole is a whole number, also one that came from JSON.
func whole(v any) (int, bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case float64:
		return int(v), v == float64(int(v))
	default:
		return 0, false
	}
}

// asList passes a list on that a predicate may run over, and nothing else.
func asList(v any) (any, error) {
	if v == nil {
		return nil, errors.New("wants a list and got nil")
	}
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice {
		return nil, fmt.Errorf("wants a list and got %s", typeName(v))
	}
	if err := checkItems(r.Len()); err != nil {
		return nil, err
	}
	return v, nil
}

// typeName names a value's type in the words of JSON.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "nil"
	case string:
		return "a text"
	case bool:
		return "a bool"
	case int, float64:
		return "a number"
	case map[string]any:
		return "an object"
	case []any, []string, []int:
		return "a list"
	default:
		return fmt.Sprintf("%T", v)
	}
}
