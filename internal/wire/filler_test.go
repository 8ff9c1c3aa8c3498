package wire

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// filler sets every exported field of a value to something that is not zero,
// so that a field which a message forgets shows as a difference.
type filler struct {
	tb  testing.TB
	rnd *rand.Rand
}

func newFiller(tb testing.TB, seed uint64) *filler {
	tb.Helper()
	return &filler{tb: tb, rnd: rand.New(rand.NewPCG(seed, 1))}
}

// fill sets what v points to.
func (f *filler) fill(v any) { f.set(reflect.ValueOf(v).Elem()) }

func (f *filler) set(v reflect.Value) {
	if f.special(v) {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.word())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(f.rnd.Int64N(1<<40) - 1<<20)
	case reflect.Uint64:
		v.SetUint(f.rnd.Uint64())
	case reflect.Float64:
		v.SetFloat(f.rnd.Float64() * 1000)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.set(v.Elem())
	case reflect.Slice:
		for range 2 {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			f.set(v.Index(v.Len() - 1))
		}
	case reflect.Map:
		f.setMap(v)
	case reflect.Struct:
		for i := range v.NumField() {
			// Words of a plugin that the host keeps apart are never sent.
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Name != "Detail" {
				f.set(v.Field(i))
			}
		}
	default:
		f.tb.Fatalf("cannot fill %s", v.Type())
	}
}

func (f *filler) setMap(v reflect.Value) {
	v.Set(reflect.MakeMap(v.Type()))
	for range 2 {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.set(key)
		f.set(value)
		v.SetMapIndex(key, value)
	}
}

// special sets types whose fields are not independent of each other.
func (f *filler) special(v reflect.Value) bool {
	switch p := v.Addr().Interface().(type) {
	case *json.RawMessage:
		*p = fmt.Appendf(nil, `{%q: [%d, "ä\n"]}`, f.word(), f.rnd.IntN(100))
	case *time.Time:
		zone := time.FixedZone("", 60*(f.rnd.IntN(24*60)-12*60))
		*p = time.Unix(f.rnd.Int64N(1<<32), f.rnd.Int64N(1e9)).In(zone)
	case *phases.Text:
		*p = phases.Text{Value: f.word()}
		if f.rnd.IntN(2) == 0 {
			*p = phases.Text{Withheld: true, Chars: f.rnd.IntN(100)}
		}
	case *phases.Contribution:
		*p = f.contribution(phases.Kinds()[f.rnd.IntN(len(phases.Kinds()))])
	case *phases.Input:
		rows := phases.Standard().Rows()
		*p = rows[f.rnd.IntN(len(rows))].NewInput()
		f.fill(*p)
	case *phases.Host:
		// It is not sent.
	default:
		return false
	}
	return true
}

func (f *filler) word() string {
	words := []string{"alpha", "beta", "gamma δ", "line\nbreak", "emoji 🙂", "“quoted”", "שלום", "x"}
	return fmt.Sprintf("%s%d", words[f.rnd.IntN(len(words))], f.rnd.IntN(1000))
}

// contribution makes a filled contribution of a kind.
func (f *filler) contribution(k phases.Kind) phases.Contribution {
	var list phases.Contributions
	if err := json.Unmarshal(fmt.Appendf(nil, `[{"kind":%q}]`, k), &list); err != nil {
		f.tb.Fatal(err)
	}
	f.fill(list[0])
	return list[0]
}

// input makes a filled input of a phase.
func (f *filler) input(row phases.Row) phases.Input {
	in := row.NewInput()
	if custom, ok := in.(*phases.CustomInput); ok {
		custom.Fields = raw(`{"a": 1}`)
		return custom
	}
	f.fill(in)
	return in
}
