package pool

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/supervise"
	"github.com/grapnelhq/grapnel/phases"
)

// secretPlugin reads a declaration with secrets of several forms.
func secretPlugin(t *testing.T) *config.Plugin {
	t.Helper()
	vars := map[string]string{
		"LONG": "correct horse", "LONGER": "correct horse battery", "QUOTED": `pass"word\1`, "SHORT": "abc",
		"KEY": "-----BEGIN KEY-----\nMIIBVwIBADAN\nqwertz\n", "PLAIN": "variable",
	}
	loader := config.Loader{LookupEnv: func(name string) (string, bool) { value, ok := vars[name]; return value, ok }}
	cfg, err := loader.Parse([]byte(`
version: 1
plugins:
  - name: p
    env: {set: {A: '${PLAIN}', B: in the open}}
    config:
      list: [one, '${LONG}', {'a/b~c': '${LONGER}'}]
      quoted: '${QUOTED}'
      short: '${SHORT}'
      key: '${KEY}'
      public: nothing to hide
`), "/grapnel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return &cfg.Plugins[0]
}

func TestRedactor(t *testing.T) {
	t.Parallel()

	r := newRedactor(secretPlugin(t))
	tests := []struct{ name, text, want string }{
		{"nothing", "all is well", "all is well"},
		{"in a list", "a correct horse!", "a ***!"},
		{"the longer one", "correct horse battery staple", "*** staple"},
		{"bare", `pass"word\1`, "***"},
		{"as JSON and Go write it", `{"x":"pass\"word\\1"}`, `{"x":"***"}`},
		{"too short", "abc", "abc"},
		{"a line of a key", "read MIIBVwIBADAN and qwertz", "read *** and ***"},
		{"of the environment", "A=variable", "A=***"},
		{"from the file", "in the open, nothing to hide", "in the open, nothing to hide"},
		{"twice", "correct horsecorrect horse", "******"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := r.text(tt.text); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestRedactorOfErrors(t *testing.T) {
	t.Parallel()

	r := newRedactor(secretPlugin(t))
	refused := &phases.ConfigError{Pointer: "/list/1", Message: "correct horse is no word"}
	coded := phases.Errorf(phases.CausePluginError, "it says: %w", error(refused))
	coded.PluginCode, coded.Retryable = "word", true
	for _, err := range []error{refused, coded, errors.Join(coded, errors.New("more")), errors.New("correct horse")} {
		got := r.err(err)
		if text := fmt.Sprintf("%v %+v", got, got); strings.Contains(text, "horse") || !strings.Contains(text, "***") {
			t.Errorf("%v is told as %s", err, text)
		}
		if _, was := errors.AsType[*phases.ConfigError](err); was {
			if at, is := errors.AsType[*phases.ConfigError](got); !is || at.Pointer != "/list/1" {
				t.Errorf("%v has lost its place: %v", err, got)
			}
		}
	}
	hidden := r.coded(coded)
	if hidden.Code != coded.Code || hidden.PluginCode != "word" || !hidden.Retryable || strings.Contains(hidden.Message, "horse") {
		t.Errorf("coded: %+v", hidden)
	}
	if !strings.Contains(coded.Message, "horse") {
		t.Error("the error itself was changed")
	}
	harmless := errors.New("no word of it")
	if got := r.err(harmless); !errors.Is(got, harmless) {
		t.Errorf("an error without secrets became %v", got)
	}
	notes := []phases.Diagnostic{{Code: "x", Message: "a correct horse"}}
	r.notes(notes)
	if diff := cmp.Diff(notes, []phases.Diagnostic{{Code: "x", Message: "a ***"}}); diff != "" {
		t.Errorf("notes (-got +want):\n%s", diff)
	}
}

// TestFailureKeepsItsClass: what stands for a secret, such as ${HOME}, may be in the
// path of an error whose number says that the host is at fault.
func TestFailureKeepsItsClass(t *testing.T) {
	t.Parallel()

	in := &Instance{redactor: newRedactor(secretPlugin(t))}
	err := phases.Errorf(phases.CauseExecFailed, "plugin p: %w", &fs.PathError{Op: "open", Path: "/variable/p", Err: syscall.EMFILE})
	f := in.failureOf(err)
	if f.Class != supervise.ClassResource || strings.Contains(f.Error()+f.Detail, "variable") || !strings.Contains(f.Detail, "***") {
		t.Errorf("failure %+v", f)
	}
}

func TestClassOf(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		err  error
		want supervise.Class
	}{
		{"timeout", phases.Errorf(phases.CauseStartTimeout, "x"), supervise.ClassOrdinary},
		{"unsafe path", phases.Errorf(phases.CauseUnsafePath, "x"), supervise.ClassPermanent},
		{"version", fmt.Errorf("y: %w", phases.Errorf(phases.CauseVersionMismatch, "x")), supervise.ClassPermanent},
		{"not executable", phases.Errorf(phases.CauseExecFailed, "x: %w", syscall.EACCES), supervise.ClassPermanent},
		{"configuration", &phases.ConfigError{Message: "x"}, supervise.ClassPermanent},
		{"memory", phases.Errorf(phases.CauseOOM, "x"), supervise.ClassMemory},
		{"no descriptors", phases.Errorf(phases.CauseExecFailed, "x: %w", syscall.EMFILE), supervise.ClassResource},
		{"no processes", phases.Errorf(phases.CauseUnavailable, "x: %w", syscall.EAGAIN), supervise.ClassResource},
	}
	for _, tt := range tests {
		if got := classOf(tt.err); got != tt.want {
			t.Errorf("%s: class %q, want %q", tt.name, got, tt.want)
		}
	}
}
