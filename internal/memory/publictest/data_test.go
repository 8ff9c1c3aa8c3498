// Package publictest evaluates the memory on public data, which nobody wrote for this project. `make eval` runs it.
//
// The repository holds none of their texts, because their licences differ: LoCoMo is CC BY-NC 4.0, XDailyDialog Apache 2.0
// on top of DailyDialog's CC BY-NC-SA 4.0, and XPersona MIT. `make eval-data` clones them.
package publictest

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// utterance is what one person says in one turn.
type utterance struct {
	// ID is the corpus, the place and the number: "locomo:26/D1:3", "xpersona:fr_test/12/3".
	ID, Lang, Text string
}

// data returns the directory of `make eval-data`, and skips the test where there is none.
func data(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("GRAPNEL_EVAL_DATA")
	if dir == "" {
		t.Skip("no public data: run make eval, or set GRAPNEL_EVAL_DATA to the directory of make eval-data")
	}
	return dir
}

// utterances returns those of all corpora in a fixed order.
func utterances(t *testing.T) (all []utterance) {
	t.Helper()
	dir := data(t)
	for _, c := range conversations(t, dir) {
		for _, turn := range c.turns {
			all = append(all, utterance{"locomo:" + c.name + "/" + turn.id, "en", turn.text})
		}
	}
	for _, read := range []func(string) ([]utterance, error){dailyDialog, xPersona} {
		some, err := read(dir)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	return all
}

// conversation is one of LoCoMo: English, written by models and edited by people.
type conversation struct {
	name         string
	turns, facts []item
	questions    []question
	now          time.Time
}

// item is a turn, or a fact that a model extracted from it. evidence is the text as a memory.
type item struct {
	id, text, memory string
	at               time.Time
}

// question names the ids of its evidence. The halves are fixed by a hash.
type question struct {
	text     string
	evidence map[string]bool
	heldOut  bool
}

var turnID = regexp.MustCompile(`D\d+:\d+`)

// conversations reads LoCoMo.
func conversations(t *testing.T, dir string) (all []conversation) {
	t.Helper()
	archive, err := zip.OpenReader(filepath.Join(dir, "locomo", "data", "locomo10.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	for _, f := range archive.File {
		if !strings.HasSuffix(f.Name, ".json") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		var parts map[string]json.RawMessage
		if err := json.NewDecoder(r).Decode(&parts); err != nil {
			t.Fatal(err)
		}
		all = append(all, readConversation(t, strings.TrimSuffix(filepath.Base(f.Name), ".json"), parts))
	}
	return all
}

func readConversation(t *testing.T, name string, parts map[string]json.RawMessage) conversation {
	t.Helper()
	read := func(key string, into any) {
		if text := parts[key]; text != nil {
			if err := json.Unmarshal(text, into); err != nil {
				t.Fatalf("%s, %s: %v", name, key, err)
			}
		}
	}
	c := conversation{name: name}
	times := map[string]time.Time{}
	for n := 1; parts[fmt.Sprintf("session_%d_date_time", n)] != nil; n++ {
		session := fmt.Sprintf("session_%d", n)
		var when string
		read(session+"_date_time", &when)
		at, err := time.Parse("3:04 pm on 2 January, 2006", when)
		if err != nil {
			t.Fatal(err)
		}
		var turns []struct {
			Speaker, Text string
			ID            string `json:"dia_id"`
		}
		read(session, &turns)
		for i, u := range turns {
			times[u.ID] = at.Add(time.Duration(i) * time.Minute)
			c.now = times[u.ID].AddDate(0, 0, 1)
			c.turns = append(c.turns, item{u.ID, u.Text, u.Speaker + ": " + u.Text, times[u.ID]})
		}
		var facts map[string][][2]any
		read(session+"_observation", &facts)
		for _, speaker := range slices.Sorted(maps.Keys(facts)) {
			for _, f := range facts[speaker] {
				text, id := fmt.Sprint(f[0]), turnID.FindString(fmt.Sprint(f[1]))
				c.facts = append(c.facts, item{id, text, text, times[id]})
			}
		}
	}
	var questions []struct {
		Question string
		Evidence []string
	}
	read("qa", &questions)
	for _, q := range questions {
		evidence := map[string]bool{}
		for _, id := range turnID.FindAllString(strings.Join(q.Evidence, " "), -1) {
			if !times[id].IsZero() {
				evidence[id] = true
			}
		}
		h := fnv.New32a()
		_, _ = io.WriteString(h, "conv-"+name+"/"+q.Question)
		if len(evidence) > 0 {
			c.questions = append(c.questions, question{q.Question, evidence, h.Sum32()%2 == 1})
		}
	}
	return c
}

// joined is a sentence of the German translation that begins without a space.
var joined = regexp.MustCompile(`([.?!])([A-ZÄÖÜ])`)

// dailyDialog reads everyday dialogues in English, German and Chinese; the latter are translations by people.
func dailyDialog(dir string) ([]utterance, error) {
	var all []utterance
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
					all = append(all, utterance{fmt.Sprintf("xdailydialog:%s_%s/%d/%d", lang, part, i+1, j+1), lang, text})
				}
			}
		}
	}
	return all, nil
}

// xPersona reads chats of people who play a persona: Persona-Chat in English, and translations that people corrected.
func xPersona(dir string) ([]utterance, error) {
	var all []utterance
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
						all = append(all, utterance{fmt.Sprintf("xpersona:%s_%s/%d/%d", file.lang, part, i+1, j+1), file.lang, text})
					}
				}
			}
		}
	}
	return all, nil
}
