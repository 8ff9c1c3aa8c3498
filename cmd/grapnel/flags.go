package main

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/grapnelhq/grapnel/internal/text/suggest"
)

// noResult is of commands that print no JSON, or one of several.
type noResult struct{}

// command makes a command that is run with its flags and arguments, and prints an R as JSON. Its flags are the fields of F;
// see [addFlags]. They are made when they are needed: a command needs those of no other.
func command[R, F any](a *app, use, short string, args cobra.PositionalArgs, run func(context.Context, *F, []string) error) *cobra.Command {
	f := new(F)
	c := &cobra.Command{Use: use, Short: short, Args: args}
	c.RunE = func(c *cobra.Command, args []string) error {
		if p, ok := any(f).(interface{ parsed(c *cobra.Command) }); ok {
			p.parsed(c)
		}
		return run(c.Context(), f, args)
	}
	if reflect.TypeFor[R]() != reflect.TypeFor[noResult]() {
		a.results[c] = generated[R]
	}
	a.flags[c] = sync.OnceFunc(func() {
		c.ResetFlags() // finding it has given it those of all commands, which its own may replace
		addFlags(c, c.Flags(), reflect.ValueOf(f).Elem())
	})
	return c
}

// addFlags adds the flags of a command that was found.
func (a *app) addFlags(c *cobra.Command) {
	if add := a.flags[c]; add != nil {
		add()
	}
}

type noFlags struct{}

// completing sets what completes the arguments of a command.
func completing(c *cobra.Command, complete cobra.CompletionFunc) *cobra.Command {
	c.ValidArgsFunction = complete
	return c
}

// addFlags makes a flag of each field that has a tag "flag", also of embedded structs. The tag "usage" describes it, with
// the name of its value in braces. "default" is its value where it is not given; a pointer is nil then. "words" are the
// values that it takes, separated by "|"; "suggest" are values that are completed, where others are taken too.
func addFlags(c *cobra.Command, to *pflag.FlagSet, fields reflect.Value) {
	for i := range fields.NumField() {
		field := fields.Type().Field(i)
		if field.Tag.Get("flag") != "" {
			addFlag(c, to, fields.Field(i), field.Tag)
		} else if field.Anonymous && field.Type.Kind() == reflect.Struct {
			addFlags(c, to, fields.Field(i))
		}
	}
}

// hasFlag reports whether a struct has a flag with a name.
func hasFlag(fields reflect.Type, name string) bool {
	return slices.ContainsFunc(reflect.VisibleFields(fields), func(f reflect.StructField) bool { return f.Tag.Get("flag") == name })
}

func addFlag(c *cobra.Command, to *pflag.FlagSet, field reflect.Value, tag reflect.StructTag) {
	value := &flagValue{field: field}
	flag := &pflag.Flag{Name: tag.Get("flag"), Value: value, DefValue: tag.Get("default"), Usage: strings.ReplaceAll(strings.ReplaceAll(tag.Get("usage"), "{", "`"), "}", "`")}
	if value.Type() == "bool" {
		flag.NoOptDefVal = "true"
	}
	if flag.DefValue != "" {
		if err := value.Set(flag.DefValue); err != nil {
			panic(fmt.Sprintf("--%s: its default: %v", flag.Name, err)) // every command is made at each start
		}
	}
	to.AddFlag(flag)
	if words := tag.Get("words"); words != "" {
		value.words = strings.Split(words, "|")
		completeFlag(c, flag.Name, value.words)
	} else if words := tag.Get("suggest"); words != "" {
		completeFlag(c, flag.Name, strings.Split(words, "|"))
	}
}

// flagValue sets a field.
type flagValue struct {
	field reflect.Value
	words []string
}

// Type is what pflag shows where a usage names no value.
func (v *flagValue) Type() string {
	at := v.field.Type()
	if at.Kind() == reflect.Pointer {
		at = at.Elem()
	}
	switch at.Kind() {
	case reflect.Bool, reflect.Int:
		return at.Kind().String()
	default:
		return "string"
	}
}

// String returns a text as it was given, and "" for other types.
func (v *flagValue) String() string {
	if v.field.IsValid() && v.field.Kind() == reflect.String {
		return v.field.String()
	}
	return ""
}

// Set implements pflag.Value.
func (v *flagValue) Set(s string) error {
	if v.words != nil && !slices.Contains(v.words, s) {
		return errors.New("use " + alternatives(v.words) + suggest.DidYouMean(s, v.words))
	}
	return setField(v.field, s)
}

func setField(field reflect.Value, s string) (err error) {
	switch into := field.Addr().Interface().(type) {
	case *time.Duration:
		if *into, err = parseAge(s); err != nil || *into <= 0 {
			err = errors.New("give a time such as 90d, 36h or 1d12h")
		}
		return err
	case *time.Time:
		*into, err = instant(s)
		return err
	case encoding.TextUnmarshaler:
		return into.UnmarshalText([]byte(s))
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString(s)
	case reflect.Slice:
		field.Set(reflect.Append(field, reflect.ValueOf(s)))
	case reflect.Bool:
		var on bool
		on, err = strconv.ParseBool(s)
		field.SetBool(on)
	case reflect.Int, reflect.Int64:
		var n int64
		if n, err = strconv.ParseInt(s, 10, 64); err != nil || n < 0 {
			err = errors.New("give a number, 0 or more")
		}
		field.SetInt(n)
	case reflect.Pointer:
		given := reflect.New(field.Type().Elem())
		err = setField(given.Elem(), s)
		field.Set(given)
	default:
		panic("a flag cannot be a " + field.Type().String())
	}
	return err
}

// instant reads a date, a time, or a duration before now.
func instant(s string) (time.Time, error) {
	if age, err := parseAge(s); err == nil {
		return time.Now().Add(-age), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339, time.DateTime} {
		if at, err := time.Parse(layout, s); err == nil {
			return at, nil
		}
	}
	return time.Time{}, errors.New("give a date such as 2026-11-20, a time such as 2026-11-20T09:00:00Z, or a duration such as 7d")
}

// parseAge is time.ParseDuration with days of 24 hours in front.
func parseAge(s string) (time.Duration, error) {
	number, rest, found := strings.Cut(s, "d")
	if !found {
		return time.ParseDuration(s)
	}
	days, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("days: %w", err)
	}
	age := time.Duration(days) * 24 * time.Hour
	if rest == "" {
		return age, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more < 0 || age+more < age {
		return 0, fmt.Errorf("behind the days: %q", rest)
	}
	return age + more, nil
}

// alternatives are words as in "a, b or c".
func alternatives(list []string) string {
	last := len(list) - 1
	if last < 1 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

// A flag or argument that cannot be understood ends a command before it has done anything.
func flagError(c *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return usagef("--%s %q: %w", wrong.GetFlag().Name, wrong.GetValue(), wrong.Unwrap())
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usagef("%w; see: %s --help", err, c.CommandPath())
	}
	if shorts := unknown.GetSpecifiedShortnames(); shorts != "" {
		return usagef("unknown flag -%s for %q: flags have long names; see: %s --help", shorts, c.CommandPath(), c.CommandPath())
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	name := "--" + unknown.GetSpecifiedName()
	return usagef("unknown flag %s for %q%s; see: %s --help", name, c.CommandPath(), suggest.DidYouMean(name, names), c.CommandPath())
}
