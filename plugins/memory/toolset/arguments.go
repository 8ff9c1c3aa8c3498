package toolset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/plugins/memory/itemstore"
	"github.com/grapnelhq/grapnel/plugins/memory/turnpolicy"
)

// Bounds of arguments, as in the schemas. Characters are Unicode scalar values.
const (
	maxArguments = 64 << 10 // bytes
	maxQuery     = 500
	maxID        = 64
	maxIDs       = 50
	maxCursor    = 200

	defaultHits, maxHits = 8, 20
	defaultPage, maxPage = 20, 50
)

// SearchArguments are those of memory_search.
type SearchArguments struct {
	Query string `json:"query"`
	Limit int    `json:"limit"`
}

// ListArguments are those of memory_list.
type ListArguments struct {
	Scope    itemstore.Scope     `json:"scope"`
	Category turnpolicy.Category `json:"category"`
	Limit    int                 `json:"limit"`
	Cursor   string              `json:"cursor"`
}

// GetArguments are those of memory_get.
type GetArguments struct {
	ID string `json:"id"`
}

// RememberArguments are those of memory_remember.
type RememberArguments struct {
	Text     string              `json:"text"`
	Category turnpolicy.Category `json:"category"`
	Scope    itemstore.Scope     `json:"scope"`
	Replaces string              `json:"replaces"`
}

// ForgetArguments are those of memory_forget: IDs, or Query, or Everything.
type ForgetArguments struct {
	IDs          []string        `json:"ids"`
	Query        string          `json:"query"`
	Everything   bool            `json:"everything"`
	Scope        itemstore.Scope `json:"scope"`
	Confirmation string          `json:"confirmation"`
}

// ParseSearch reads the arguments of memory_search, with the default limit.
func ParseSearch(data json.RawMessage) (SearchArguments, error) {
	a, err := decode[SearchArguments](data)
	if err != nil {
		return SearchArguments{}, err
	}
	a.Query = strings.TrimSpace(a.Query)
	return checked(a, needed("query", a.Query, maxQuery), limited(&a.Limit, defaultHits, maxHits))
}

// ParseList reads the arguments of memory_list, with the default limit.
func ParseList(data json.RawMessage) (ListArguments, error) {
	a, err := decode[ListArguments](data)
	if err != nil {
		return ListArguments{}, err
	}
	return checked(a, word("scope", a.Scope, itemstore.Scopes()), word("category", a.Category, turnpolicy.Categories()),
		text("cursor", a.Cursor, maxCursor), limited(&a.Limit, defaultPage, maxPage))
}

// ParseGet reads the arguments of memory_get.
func ParseGet(data json.RawMessage) (GetArguments, error) {
	a, err := decode[GetArguments](data)
	if err != nil {
		return GetArguments{}, err
	}
	return checked(a, needed("id", a.ID, maxID))
}

// ParseRemember reads the arguments of memory_remember. A category that is left out is
// that of a fact; a scope that is left out stays so.
func ParseRemember(data json.RawMessage) (RememberArguments, error) {
	a, err := decode[RememberArguments](data)
	if err != nil {
		return RememberArguments{}, err
	}
	a.Text = strings.TrimSpace(a.Text)
	if a.Category == "" {
		a.Category = turnpolicy.Factual
	}
	return checked(a, needed("text", a.Text, itemstore.MaxText), word("category", a.Category, turnpolicy.Categories()),
		word("scope", a.Scope, itemstore.Scopes()), text("replaces", a.Replaces, maxID))
}

// ParseForget reads the arguments of memory_forget.
func ParseForget(data json.RawMessage) (ForgetArguments, error) {
	a, err := decode[ForgetArguments](data)
	if err != nil {
		return ForgetArguments{}, err
	}
	a.Query = strings.TrimSpace(a.Query)
	ways := 0
	for _, given := range []bool{len(a.IDs) > 0, a.Query != "", a.Everything} {
		if given {
			ways++
		}
	}
	switch {
	case ways != 1:
		err = errors.New("give either ids, or a query, or everything: true")
	case len(a.IDs) > maxIDs:
		err = fmt.Errorf("%d ids; at most %d at a time", len(a.IDs), maxIDs)
	case a.Scope != "" && !a.Everything:
		err = errors.New("scope goes with everything: true")
	case a.Confirmation != "" && len(a.IDs) > 0:
		err = errors.New("ids need no confirmation")
	}
	problems := []error{err, text("query", a.Query, maxQuery), word("scope", a.Scope, itemstore.Scopes()), text("confirmation", a.Confirmation, maxID)}
	for _, id := range a.IDs {
		problems = append(problems, needed("ids", id, maxID))
	}
	return checked(a, problems...)
}

// decode reads one JSON object strictly. What a model leaves out is zero.
func decode[T any](data json.RawMessage) (T, error) {
	var a, none T
	if len(data) > maxArguments {
		return none, fmt.Errorf("the arguments have more than %d bytes", maxArguments)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return a, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			return none, fmt.Errorf("%s is a %s and should be a %v", wrong.Field, wrong.Value, wrong.Type.Kind())
		}
		return none, fmt.Errorf("the arguments are not what the tool takes: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return none, errors.New("the arguments are more than one JSON object")
	}
	return a, nil
}

// checked returns the arguments, or nothing and the first problem.
func checked[T any](a T, problems ...error) (T, error) {
	for _, err := range problems {
		if err != nil {
			var none T
			return none, err
		}
	}
	return a, nil
}

// needed reports a text that is missing, or that is wrong.
func needed(name, value string, most int) error {
	if value == "" {
		return fmt.Errorf("%s is missing", name)
	}
	return text(name, value, most)
}

// text reports a text that is too long, or none.
func text(name, value string, most int) error {
	switch n := utf8.RuneCountInString(value); {
	case n > most:
		return fmt.Errorf("%s has %d characters; at most %d are taken", name, n, most)
	case strings.ContainsRune(value, 0):
		return fmt.Errorf("%s has a NUL in it", name)
	}
	return nil
}

// word reports a value that is none of a list. The empty one is left out.
func word[T ~string](name string, value T, list []T) error {
	if value == "" || slices.Contains(list, value) {
		return nil
	}
	return fmt.Errorf("%s is %.40q and should be one of %q", name, value, list)
}

// limited fills in a limit that was left out, and reports one out of bounds.
func limited(limit *int, standard, most int) error {
	switch {
	case *limit == 0:
		*limit = standard
	case *limit < 0 || *limit > most:
		return fmt.Errorf("limit is %d and should be from 1 to %d", *limit, most)
	}
	return nil
}
