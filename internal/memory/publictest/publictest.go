// Package publictest reads public dialogues, which nobody wrote for this project, for evaluations of the memory's rules.
//
// The repository holds none of their texts, because their licences differ: LoCoMo is CC BY-NC 4.0, XDailyDialog Apache 2.0
// on top of DailyDialog's CC BY-NC-SA 4.0, and XPersona MIT. `make eval-data` clones them.
package publictest

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Variable names the environment variable with the directory of `make eval-data`.
const Variable = "GRAPNEL_EVAL_DATA"

// Utterance is what one person says in one turn.
type Utterance struct {
	// ID is the corpus, the place and the number: "locomo:26/D1:3", "xpersona:fr_test/12/3".
	ID   string
	Lang string
	Text string
}

// Load returns the utterances of all corpora in a fixed order, and skips the test where the data is not.
func Load(t *testing.T) []Utterance {
	t.Helper()
	dir := os.Getenv(Variable)
	if dir == "" {
		t.Skip("no public dialogues: run make eval-extraction, or set " + Variable + " to the directory of make eval-data")
	}
	var all []Utterance
	for _, read := range []func(string) ([]Utterance, error){locomo, dailyDialog, xPersona} {
		some, err := read(dir)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	return all
}

// locomo reads the ten conversations of the long-term conversations benchmark: English, written by models and edited
// by people.
func locomo(dir string) ([]Utterance, error) {
	archive, err := zip.OpenReader(filepath.Join(dir, "locomo", "data", "locomo10.zip"))
	if err != nil {
		return nil, err
	}
	defer archive.Close() //nolint:errcheck // it was only read
	var all []Utterance
	for _, f := range archive.File {
		if !strings.HasSuffix(f.Name, ".json") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		var sessions map[string]json.RawMessage
		if err := json.Unmarshal(data, &sessions); err != nil {
			return nil, err
		}
		for n := 1; ; n++ {
			var turns []struct {
				ID   string `json:"dia_id"`
				Text string `json:"text"`
			}
			session, ok := sessions["session_"+strconv.Itoa(n)]
			if !ok {
				break
			}
			if err := json.Unmarshal(session, &turns); err != nil {
				return nil, err
			}
			for _, turn := range turns {
				if turn.Text != "" {
					id := "locomo:" + strings.TrimSuffix(filepath.Base(f.Name), ".json") + "/" + turn.ID
					all = append(all, Utterance{id, "en", turn.Text})
				}
			}
		}
	}
	return all, nil
}

// joined is a sentence of the German translation that begins without a space.
var joined = regexp.MustCompile(`([.?!])([A-ZÄÖÜ])`)

// dailyDialog reads everyday dialogues in English, German and Chinese; the latter are translations by people.
func dailyDialog(dir string) ([]Utterance, error) {
	var all []Utterance
	for _, lang := range []string{"en", "de", "zh"} {
		for _, part := range []string{"dev", "test"} {
			data, err := os.ReadFile(filepath.Join(dir, "XDailyDialog", "data", lang+"_"+part+"_human.txt"))
			if err != nil {
				return nil, err
			}
			for i, line := range bytes.Split(data, []byte("\n")) {
				dialogue, _, _ := strings.Cut(string(line), "\t")
				for j, text := range strings.Split(dialogue, "__eou__") {
					if text = strings.TrimSpace(text); text == "" {
						continue
					}
					if lang == "de" {
						text = joined.ReplaceAllString(text, "$1 $2")
					}
					all = append(all, Utterance{fmt.Sprintf("xdailydialog:%s_%s/%d/%d", lang, part, i+1, j+1), lang, text})
				}
			}
		}
	}
	return all, nil
}

// xPersona reads chats of people who play a persona: Persona-Chat in English, and translations that people corrected.
func xPersona(dir string) ([]Utterance, error) {
	var all []Utterance
	for _, file := range []struct{ lang, name, suffix string }{
		{"en", "En_persona_", ""},
		{"fr", "Fr_persona_split_", "_human_annotated"},
		{"zh", "Zh_persona_split_", "_human_annotated"},
	} {
		for _, part := range []string{"valid", "test"} {
			data, err := os.ReadFile(filepath.Join(dir, "Xpersona", "dataset", file.name+part+file.suffix+".json"))
			if err != nil {
				return nil, err
			}
			var dialogues []struct {
				Dialogue [][]string `json:"dialogue"`
			}
			if err := json.Unmarshal(data, &dialogues); err != nil {
				return nil, err
			}
			for i, d := range dialogues {
				for j, text := range slices.Concat(d.Dialogue...) {
					if text != "__SILENCE__" {
						all = append(all, Utterance{fmt.Sprintf("xpersona:%s_%s/%d/%d", file.lang, part, i+1, j+1), file.lang, text})
					}
				}
			}
		}
	}
	return all, nil
}
