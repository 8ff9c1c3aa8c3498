package main

import (
	"path/filepath"
	"testing"

	"github.com/grapnelhq/grapnel/config"
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
		{"no password in its name", "postgres://me:s3cret@h:1/db?password=s3cret", config.Secret{}, storeRef{"postgres://me:s3cret@h:1/db?password=s3cret", "postgres://h:1/db"}},
		{"no URL at all", "postgres://me:s3cret@h:x y", config.Secret{}, storeRef{"postgres://me:s3cret@h:x y", "the store"}},
		{"out of the environment", "", config.Secret{Value: "sqlite:b.db", FromEnv: "LOG"}, storeRef{"sqlite:conf/b.db", "the store in $LOG"}},
	}
	for _, tt := range tests {
		a := &app{globalFlags: globalFlags{Store: tt.flag}}
		if got := a.storeNamed(&config.Config{Store: tt.store}, origin{Path: file}); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
