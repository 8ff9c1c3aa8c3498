package rpc

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/time/rate"
)

// Right is what a method asks of its caller.
type Right string

// The rights. None includes another.
const (
	// NoRight is that of methods which everybody may call who is let in.
	NoRight       Right = ""
	ReadRight     Right = "read"
	WriteRight    Right = "write"
	CompileRight  Right = "compile"
	DispatchRight Right = "dispatch"
	AdminRight    Right = "admin"
)

// Rights lists all rights, for messages and schemas.
func Rights() []Right {
	return []Right{ReadRight, WriteRight, CompileRight, DispatchRight, AdminRight}
}

// EveryWorkspace stands for all workspaces in [Token.Workspaces].
const EveryWorkspace = "*"

// Token lets a caller in who knows a secret. The gateway only knows its hash.
type Token struct {
	// Name is who the caller is, for the record.
	Name string
	// SHA256 is the hash of the secret, in hexadecimal.
	SHA256 string
	// Workspaces are ids, or EveryWorkspace.
	Workspaces []string
	Rights     []Right
}

// CheckTokens refuses tokens that cannot be meant: without a name or with one
// that is used twice, with something else than a hash, with that of the empty text
// (of a variable that was not set, say) or of another token, with a workspace
// without an id, with an unknown right.
func CheckTokens(tokens []Token) error {
	var problems []error
	names, sums := map[string]bool{}, map[[sha256.Size]byte]bool{sha256.Sum256(nil): true}
	for i, t := range tokens {
		switch {
		case t.Name == "":
			problems = append(problems, fmt.Errorf("token %d has no name", i+1))
		case names[t.Name]:
			problems = append(problems, fmt.Errorf("token %q is there twice", t.Name))
		}
		names[t.Name] = true
		sum, err := t.sum()
		switch {
		case err != nil:
			problems = append(problems, err)
		case sums[sum]:
			problems = append(problems, fmt.Errorf("token %q: sha256 is that of another token, or of no text at all", t.Name))
		default:
			sums[sum] = true
		}
		if slices.Contains(t.Workspaces, "") {
			problems = append(problems, fmt.Errorf("token %q: a workspace without an id; %q stands for all", t.Name, EveryWorkspace))
		}
		for _, r := range t.Rights {
			if !slices.Contains(Rights(), r) {
				problems = append(problems, fmt.Errorf("token %q: unknown right %q, there are %v", t.Name, r, Rights()))
			}
		}
	}
	return errors.Join(problems...)
}

// sum decodes the hash.
func (t Token) sum() ([sha256.Size]byte, error) {
	sum, err := hex.DecodeString(t.SHA256)
	if err != nil || len(sum) != sha256.Size {
		return [sha256.Size]byte{}, fmt.Errorf("token %q: sha256 is not the %d hexadecimal digits of a hash", t.Name, 2*sha256.Size)
	}
	return [sha256.Size]byte(sum), nil
}

// Caller returns who calls with the token, over conn or, if that is nil, by HTTP
// POST. The server makes callers by itself; this is for tests of methods.
func (t Token) Caller(conn *Conn) *Caller {
	return &Caller{
		Name: t.Name, Conn: conn,
		workspaces: slices.Clone(t.Workspaces), rights: slices.Clone(t.Rights),
	}
}

// Caller is who calls a method. It is immutable. One with nothing but Open set
// may do everything.
type Caller struct {
	// Name is the token's name; empty where Open is set.
	Name string
	// Open says that there are no tokens. Who the caller is, is then what the
	// method's params say.
	Open bool
	// Conn is the caller's WebSocket connection; nil for HTTP POST.
	Conn *Conn

	workspaces []string
	rights     []Right
}

// May reports whether the caller has a right.
func (c *Caller) May(r Right) bool {
	return c.Open || r == NoRight || slices.Contains(c.rights, r)
}

// AllWorkspaces reports whether the caller may work in every workspace.
func (c *Caller) AllWorkspaces() bool {
	return c.Open || slices.Contains(c.workspaces, EveryWorkspace)
}

// MayWorkspace reports whether the caller may work in a workspace.
func (c *Caller) MayWorkspace(id string) bool {
	return c.AllWorkspaces() || slices.Contains(c.workspaces, id)
}

// keyring are the tokens in force, each with how often it may still call. It is
// replaced as a whole and immutable but for the limiters.
type keyring struct {
	open bool
	keys []*key
}

// key is one token. A nil key stands for a caller without one.
type key struct {
	token Token
	sum   [sha256.Size]byte
	rate  *rate.Limiter // nil: as often as it likes
	// memory is what messages and answers of all its connections take.
	memory *account
}

// newKeyring takes over the limits of tokens that stay, so that a reload gives
// nobody fresh calls. CheckTokens has accepted the tokens.
func newKeyring(tokens []Token, old *keyring, perSecond int, q *quota) *keyring {
	ring := &keyring{open: tokens == nil}
	for _, t := range tokens {
		k := &key{token: t}
		k.sum, _ = t.sum() // CheckTokens has accepted it
		if was := old.named(t.Name); was != nil {
			k.rate, k.memory = was.rate, was.memory
		} else {
			k.memory = q.token()
			if perSecond > 0 {
				k.rate = rate.NewLimiter(rate.Limit(perSecond), perSecond)
			}
		}
		ring.keys = append(ring.keys, k)
	}
	return ring
}

// named returns the key of a token; nil for none, also on a nil ring.
func (r *keyring) named(name string) *key {
	if r == nil {
		return nil
	}
	for _, k := range r.keys {
		if k.token.Name == name {
			return k
		}
	}
	return nil
}

// find returns the key of a secret. It compares with all of them, and takes as
// long for a wrong secret as for a right one.
func (r *keyring) find(secret string) *key {
	sum := sha256.Sum256([]byte(secret))
	var found *key
	for _, k := range r.keys {
		if subtle.ConstantTimeCompare(sum[:], k.sum[:]) == 1 {
			found = k
		}
	}
	return found
}

// has reports whether a key of another ring is in force here, with all that it
// grants. A nil key is in force where there are no tokens.
func (r *keyring) has(k *key) bool {
	if k == nil {
		return r.open
	}
	now := r.named(k.token.Name)
	return now != nil && now.sum == k.sum &&
		slices.Equal(now.token.Workspaces, k.token.Workspaces) && slices.Equal(now.token.Rights, k.token.Rights)
}
