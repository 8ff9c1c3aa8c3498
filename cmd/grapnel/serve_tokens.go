package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/gateway/rpc"
)

// access is who may call.
type access struct {
	// tokens are nil where callers need none.
	tokens []rpc.Token
	// file is where they were read; empty without tokens.
	file string
	// made says that serve looks after the file itself, and secretFile where the
	// token is that it made.
	made       bool
	secretFile string
}

// Names of the files of a token that serve makes, in the user's data folder.
const (
	madeTokens = "tokens.yaml"
	madeSecret = "token"
)

// settleAccess finds out who may call. Without a token file the loopback address is
// open only as long as all plugins are ours: a stranger's plugin could call the
// gateway with everybody's rights. A socket always takes a token: plugins run as its
// user and may connect to it, also where the sandbox keeps them from the token's file.
func settleAccess(f *serveFlags, cfg *config.Config) (access, error) {
	if f.tokenFile != "" {
		tokens, err := readTokens(f.tokenFile)
		if err != nil {
			return access{}, usagef("--token-file: %w", err)
		}
		return access{tokens: tokens, file: f.tokenFile}, nil
	}
	if f.socket == "" && allBuiltIn(cfg) {
		return access{}, nil
	}
	dir, err := dataFolder()
	if err != nil {
		return access{}, usagef("callers need a token; give --token-file: %w", err)
	}
	a := access{made: true, file: filepath.Join(dir, madeTokens), secretFile: filepath.Join(dir, madeSecret)}
	if err := makeTokens(&a); err != nil {
		return access{}, unable(fmt.Errorf("callers need a token, and none can be made: %w", err))
	}
	if a.tokens, err = readTokens(a.file); err != nil {
		return access{}, usagef("%w; correct the file, or remove it and %s for a new token", err, a.secretFile)
	}
	return a, nil
}

// allBuiltIn reports whether no plugin is a program of somebody else's.
func allBuiltIn(cfg *config.Config) bool {
	for i := range cfg.Plugins {
		if cfg.Plugins[i].Builtin == "" {
			return false
		}
	}
	return true
}

// readTokens reads a token file for the gateway.
func readTokens(path string) ([]rpc.Token, error) {
	list, err := config.LoadTokens(path)
	if err != nil {
		return nil, err
	}
	tokens := make([]rpc.Token, len(list.Tokens))
	for i, t := range list.Tokens {
		tokens[i] = rpc.Token{Name: t.Name, SHA256: t.SHA256, Workspaces: t.Workspaces}
		for _, r := range t.Rights {
			tokens[i].Rights = append(tokens[i].Rights, rpc.Right(r))
		}
	}
	return tokens, rpc.CheckTokens(tokens)
}

// makeTokens writes the two files where they are absent. Two gateways that start
// at once write the same: the secret is the one's that was first, and the other
// file follows from it.
func makeTokens(a *access) error {
	dir := filepath.Dir(a.file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := checkDir(dir); err != nil { // somebody may have been quicker
		return err
	}
	if _, err := os.Lstat(a.file); err == nil {
		return nil // the operator's by now; what is wrong with it, reading it says
	}
	if err := createWhole(a.secretFile, []byte(rand.Text()+rand.Text()+"\n")); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := openOwn(a.secretFile, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return err
	}
	secret, err := parseSecret(a.secretFile, data)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(secret))
	text := "# Made by grapnel serve. The token itself is in the file \"" + madeSecret + "\" beside this one.\n" +
		"tokens:\n  - name: local\n    sha256: \"" + hex.EncodeToString(sum[:]) + "\"\n" +
		"    workspaces: ['*']\n    rights: [read, write, compile, dispatch, admin]\n"
	if err := createWhole(a.file, []byte(text)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// createWhole creates a file for this user alone, which is there with its whole
// content or not at all. One that is there already is fs.ErrExist.
func createWhole(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".grapnel-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // the other name stays
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}

// maxSecret is more than any token has.
const maxSecret = 4096

// readSecret reads a token: the only line of a file.
func readSecret(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return parseSecret(path, data)
}

func parseSecret(path string, data []byte) (string, error) {
	secret := strings.TrimSpace(string(data))
	switch {
	case strings.HasPrefix(secret, "tokens:") || strings.Contains(secret, "\ntokens:"):
		return "", fmt.Errorf("%s is the gateway's file, which has hashes: callers need a file with the token itself", path)
	case secret == "" || len(secret) > maxSecret || strings.ContainsAny(secret, " \t\r\n"):
		return "", fmt.Errorf("%s holds no token: one line without blanks", path)
	}
	return secret, nil
}
