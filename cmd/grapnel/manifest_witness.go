package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/grapnelhq/grapnel/internal/translog"
)

type witnessFlags struct {
	KeyFile string `flag:"key-file" usage:"{FILE} with the private key of the witness"`
	LogKey  string `flag:"log-key"  usage:"the public {KEY} of the log, or a file with it"`
	Last    string `flag:"last"     usage:"{FILE} with the checkpoint that was signed last; it is replaced, and made if it is not there. A witness has one for each log"`
}

func (a *app) manifestWitness(ctx context.Context, f *witnessFlags, args []string) error {
	key, err := a.keyIn("key-file", f.KeyFile)
	if err != nil {
		return err
	}
	w, err := translog.NewWitness(key)
	if err != nil {
		return usagef("--key-file %s: %w", f.KeyFile, err)
	}
	l, err := a.openLog(f.LogKey)
	if err != nil {
		return err
	}
	request, err := a.readInput("REQUEST", args[0])
	if err != nil {
		return err
	}
	return a.cosign(ctx, w, l, request, f.Last)
}

// cosign signs a checkpoint, keeps it as the last one and then prints it. It locks the file of the last one: two commands
// that read the same file could sign both sides of a fork.
func (a *app) cosign(ctx context.Context, w *translog.Witness, l *translog.Log, request []byte, last string) error {
	if last == "" {
		return usagef("witness needs --last FILE: what it has signed before decides what it may sign")
	}
	path, err := realFile(last)
	if err != nil {
		return usagef("--last %s: %w", last, err)
	}
	unlock, err := lockBeside(ctx, path, lockTime, "another command signs with it")
	if err != nil {
		return unable(fmt.Errorf("--last %s: %w", last, err))
	}
	defer unlock()
	before, err := lastSigned(path, l)
	if err != nil {
		return usagef("--last %s: %w", last, err)
	}
	c, err := w.Cosign(l, before, request)
	if err != nil {
		return refused(err)
	}
	if err := errors.Join(replaceFile(path, []byte(c.Note), 0o600), syncDir(filepath.Dir(path))); err != nil {
		return unable(err)
	}
	return a.print(c, func() { a.out.WriteString(c.Note) })
}

// lastSigned reads the checkpoint that was signed last; it is empty if there is no file.
func lastSigned(path string, l *translog.Log) (string, error) {
	const remedy = "put the last checkpoint that this witness has signed there, or remove the file if it has never signed one of this log"
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", unwrapPath(err)
	case !info.Mode().IsRegular():
		return "", errors.New("it is not a file")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", unwrapPath(err)
	}
	if strings.TrimSpace(string(data)) == "" {
		return "", errors.New("the file is empty, so what was signed before is not known; " + remedy)
	}
	if _, err := l.Open(string(data)); err != nil {
		return "", fmt.Errorf("it does not hold the checkpoint that was signed last: %w; %s", err, remedy)
	}
	return string(data), nil
}
