package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/sdk/serve"
)

// runMain is set in the environment of the process that is the example.
const runMain = "RUN_EXAMPLE_CHAT"

// TestMain makes this test binary three programs: the tests, the example, and
// the plugins that the example starts from its own binary.
func TestMain(m *testing.M) {
	serve.Builtins(shipped()...)
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// chatIn runs the example in a folder whose AGENTS.md is long enough to be cached.
func chatIn(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	rules := "# Rules\n\n" + strings.Repeat("- Keep functions short, and name things as the glossary does.\n", 200)
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), runMain+"=1", "XDG_CONFIG_HOME="+t.TempDir())
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	return string(out) + stderr.String(), err
}

// wantTalk is what is said, and by what each request differs from the one before
// it, with the numbers of tokens replaced by #.
const wantTalk = `user:  What are the rules here?
model: I am to be brief.
       (calls request_tools {"domains":["arithmetic"]})
       (calls add {"a":17,"b":25})
user:  What is 17 plus 25?
model: That is 42.
       (calls add {"a":3,"b":4})
user:  And 3 plus 4?
model: That is 7.
user:  Thank you.
model: You are welcome.

turn round broken by
1 0 -
2 0 memory_recall of desk, # tokens lost
2 1 add of desk, # tokens lost
2 2 -
3 0 memory_recall of desk, # tokens lost
3 1 -
4 0 memory_recall of desk, # tokens lost
`

// row is a line of the table. What is "-" there is -1.
type row struct{ prompt, predicted, read int }

// tableRow is a line of the table: turn, round, three numbers, and the reason.
var tableRow = regexp.MustCompile(`(?m)^(\d) +(\d) +(\d+|-) +(\d+|-) +(\d+|-) +(.*)$`)

// split parts the numbers of a table from what can be compared.
func split(t *testing.T, out string) (talk string, rows []row) {
	t.Helper()
	number := func(s string) int {
		if s == "-" {
			return -1
		}
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	talk = tableRow.ReplaceAllStringFunc(out, func(line string) string {
		m := tableRow.FindStringSubmatch(line)
		rows = append(rows, row{number(m[3]), number(m[4]), number(m[5])})
		return m[1] + " " + m[2] + " " + regexp.MustCompile(`\d+ tokens`).ReplaceAllString(m[6], "# tokens")
	})
	return regexp.MustCompile(`turn +round +prompt +predicted +from cache +broken by`).ReplaceAllString(talk, "turn round broken by"), rows
}

// readIn runs the example and returns what came out of the cache in each request.
func readIn(t *testing.T, args ...string) []row {
	t.Helper()
	out, err := chatIn(t, t.TempDir(), args...)
	if err != nil {
		t.Fatalf("chat: %v\n%s", err, out)
	}
	talk, rows := split(t, out)
	if diff := cmp.Diff(talk, wantTalk); diff != "" {
		t.Fatalf("output (-got +want):\n%s", diff)
	}
	return rows
}

// TestProviders holds the same conversation over three APIs.
func TestProviders(t *testing.T) {
	t.Parallel()

	for _, provider := range []string{"anthropic", "openai", "gemini"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()

			rows := readIn(t, "--provider", provider)
			for i, r := range rows {
				if r.read > r.prompt || r.prompt < 1000 || i > 0 && r.predicted < 0 {
					t.Errorf("request %d: %+v", i, r)
				}
			}
			if first, tools := rows[0], rows[2]; first.read != 0 || first.predicted != -1 || tools.read != 0 || tools.predicted != 0 {
				t.Errorf("with an empty cache %+v, with other tools %+v: nothing can come out of it", first, tools)
			}
			// The second round of a turn finds all of the first.
			if first, second := rows[4], rows[5]; second.read < first.prompt-128 || second.predicted == 0 {
				t.Errorf("second round: %+v after %+v", second, first)
			}
			// What is before the recall is found in the next turn.
			if last := rows[6]; last.read < last.prompt/2 {
				t.Errorf("last turn: %+v", last)
			}
		})
	}
}

// TestArrangements compares the last turn: the recall costs everything behind it.
func TestArrangements(t *testing.T) {
	t.Parallel()

	reference := readIn(t, "--provider", "openai", "--order", "reference")[6].read
	byPace := readIn(t, "--provider", "openai", "--order", "cache")[6].read
	behind := readIn(t, "--provider", "openai", "--behind", "memory_recall")[6].read
	if reference >= byPace || byPace >= behind {
		t.Errorf("read %d in reference order, %d in that by pace, %d with the recall behind the conversation: want them to rise", reference, byPace, behind)
	}
}

// TestStoreStays: a second conversation goes on where the first one ended.
func TestStoreStays(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	file := filepath.Join(dir, "kept", "manifests.db")
	for i := range 2 {
		out, err := chatIn(t, dir, "--store", file, "Hello.")
		if _, rows := split(t, out); err != nil || len(rows) != i+1 {
			t.Errorf("conversation %d: %v\n%s", i, err, out)
		} else if i == 1 && rows[1].predicted < 0 {
			t.Errorf("nothing was predicted from the stored manifest:\n%s", out)
		}
	}
}

// TestContext leaves out the past when there is no room for it.
func TestContext(t *testing.T) {
	t.Parallel()

	out, err := chatIn(t, t.TempDir(), "--context", "100", "--reserve", "50", "Hello.", "Are you there?")
	if err != nil || !strings.Contains(out, "(2 entries of the past do not fit; compaction: now)") {
		t.Errorf("chat: %v\n%s", err, out)
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()

	for want, args := range map[string][]string{
		`there is no provider "house"`:     {"--provider", "house"},
		`order "by luck" is not`:           {"--order", "by luck"},
		"flag provided but not defined: -": {"--nothing"},
	} {
		out, err := chatIn(t, t.TempDir(), args...)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%v: error %v, want %q in\n%s", args, err, want, out)
		}
	}
}
