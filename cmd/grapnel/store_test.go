package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/store"
)

func TestStoreNamed(t *testing.T) {
	t.Parallel()

	file := filepath.Join("conf", "grapnel.yaml")
	tests := []struct {
		name, flag string
		store      config.Secret
		want       storeRef
	}{
		{"none", "", config.Secret{}, storeRef{}},
		{"the flag first, as it is", "sqlite:a.db", config.Secret{Value: "sqlite:b.db"}, storeRef{"sqlite:a.db", "sqlite:a.db"}},
		{"beside the file", "", config.Secret{Value: "sqlite:./b.db"}, storeRef{"sqlite:conf/b.db", "sqlite:conf/b.db"}},
		{"absolute", "", config.Secret{Value: "sqlite:/var/b.db"}, storeRef{"sqlite:/var/b.db", "sqlite:/var/b.db"}},
		{"not a path", "", config.Secret{Value: "sqlite::memory:"}, storeRef{"sqlite::memory:", "sqlite::memory:"}},
		{
			"no password in its name", "postgres://me:s3cret@h:1/db?password=s3cret",
			config.Secret{},
			storeRef{"postgres://me:s3cret@h:1/db?password=s3cret", "postgres://h:1/db"},
		},
		{"no URL at all", "postgres://me:s3cret@h:x y", config.Secret{}, storeRef{"postgres://me:s3cret@h:x y", "the store"}},
		{"out of the environment", "", config.Secret{Value: "sqlite:b.db", FromEnv: "LOG"}, storeRef{"sqlite:conf/b.db", "the store in $LOG"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			a := &app{store: tt.flag}
			got := a.storeNamed(&config.Config{Store: tt.store}, origin{Path: file})
			if diff := cmp.Diff(got, tt.want, cmp.AllowUnexported(storeRef{})); diff != "" {
				t.Errorf("store (-got +want):\n%s", diff)
			}
		})
	}
}

// TestStoreError fixes the exit codes of a store's failures.
func TestStoreError(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		err  error
		want int
	}{
		"none":                {nil, exitOK},
		"what is no DSN":      {&store.Error{Code: store.CodeDSN}, exitUsage},
		"too short an id":     {fmt.Errorf("show: %w", &store.Error{Code: store.CodeAmbiguous}), exitUsage},
		"no such file":        {&store.Error{Code: store.CodeNotFound}, exitUnable},
		"unreachable":         {&store.Error{Code: store.CodeUnreachable}, exitUnable},
		"anything else":       {errors.New("broken"), exitUnable},
		"with a code already": {refused(&store.Error{Code: store.CodeDSN}), exitNo},
	} {
		if got := codeOf(storeError(tt.err)); got != tt.want {
			t.Errorf("%s: exit code %d, want %d", name, got, tt.want)
		}
	}
	if err := storeError(&store.Error{Code: store.CodeLocked}); !store.HasCode(err, store.CodeLocked) {
		t.Errorf("%v has lost its cause", err)
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"plain": "plain",
		"failed to connect:\n\ta: refused\n\tb: refused": "failed to connect: a: refused; b: refused",
		"1\n2\n3\n4\n5\n6": "1; 2; 3; 4; and 2 more",
		"":                 "",
	} {
		if got := (oneLine{errors.New(text)}).Error(); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
