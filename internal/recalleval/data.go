package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

const github = "https://raw.githubusercontent.com/"

// fetch decodes a file of the directory, which it downloads first if it is not there.
func fetch(ctx context.Context, dir, name, url string, into any) error {
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		if text, err = download(ctx, url); err == nil {
			err = os.MkdirAll(dir, 0o755)
		}
		if err == nil {
			err = os.WriteFile(path, text, 0o644)
		}
	}
	if err != nil {
		return fmt.Errorf("%w; or put %s there as %s, and set EVAL_DATA to its directory", err, url, path)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func download(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	return io.ReadAll(response.Body)
}

// heldOut reports the half of a question.
func heldOut(name, text string) bool {
	h := fnv.New32a()
	_, _ = io.WriteString(h, name+"/"+text)
	return h.Sum32()%2 == 1
}

var turnID = regexp.MustCompile(`D\d+:\d+`)

// locomo reads the conversations, and those questions whose evidence is there.
func locomo(ctx context.Context, dir string) ([]collection, error) {
	var raw []struct {
		ID string `json:"sample_id"`
		QA []struct {
			Question string
			Evidence []string
		}
		Conversation map[string]json.RawMessage
	}
	if err := fetch(ctx, dir, "locomo10.json", github+"snap-research/locomo/main/data/locomo10.json", &raw); err != nil {
		return nil, err
	}
	var all []collection
	for _, r := range raw {
		c := collection{name: r.ID}
		has := map[string]bool{}
		for n := 1; r.Conversation[fmt.Sprintf("session_%d_date_time", n)] != nil; n++ {
			turns, err := session(r.Conversation, n)
			if err != nil {
				return nil, fmt.Errorf("%s, session %d: %w", r.ID, n, err)
			}
			for _, t := range turns {
				has[t.id], c.now = true, t.at.AddDate(0, 0, 1)
			}
			c.items = append(c.items, turns...)
		}
		for _, q := range r.QA {
			evidence := map[string]bool{}
			for _, id := range turnID.FindAllString(strings.Join(q.Evidence, " "), -1) {
				if has[id] {
					evidence[id] = true
				}
			}
			if len(evidence) > 0 {
				c.questions = append(c.questions, question{q.Question, evidence, heldOut(r.ID, q.Question)})
			}
		}
		all = append(all, c)
	}
	return all, nil
}

func session(conversation map[string]json.RawMessage, n int) (items []item, err error) {
	var when string
	if err := json.Unmarshal(conversation[fmt.Sprintf("session_%d_date_time", n)], &when); err != nil {
		return nil, err
	}
	at, err := time.Parse("3:04 pm on 2 January, 2006", when)
	if err != nil {
		return nil, err
	}
	var turns []struct {
		Speaker, Text string
		ID            string `json:"dia_id"`
	}
	if text := conversation[fmt.Sprintf("session_%d", n)]; text != nil { // some have a date alone
		err = json.Unmarshal(text, &turns)
	}
	for i, t := range turns {
		items = append(items, item{t.ID, t.Speaker + ": " + t.Text, at.Add(time.Duration(i) * time.Minute)})
	}
	return items, err
}

// language is a set of questions about paragraphs, in the format of SQuAD.
type language struct{ name, file, url string }

func languages() []language {
	var all []language
	for name := range strings.FieldsSeq("en de es ro tr vi ru el ar hi th zh") {
		file := "xquad." + name + ".json"
		all = append(all, language{name, file, github + "google-deepmind/xquad/master/" + file})
	}
	return append(
		all, language{"ja", "jsquad.json", github + "yahoojapan/JGLUE/main/datasets/jsquad-v1.3/valid-v1.3.json"},
		language{"ko", "korquad.json", github + "korquad/korquad.github.io/master/dataset/KorQuAD_v1.0_dev.json"},
	)
}

// The most paragraphs and questions of a language.
const (
	maxParagraphs = 240
	maxQuestions  = 400
)

func (l language) read(ctx context.Context, dir string) (collection, error) {
	var raw struct {
		Data []struct{ Paragraphs []paragraph }
	}
	c := collection{name: l.name, now: time.Date(2024, 6, 1, 0, 0, 0, 0, time.UTC)}
	if err := fetch(ctx, dir, l.file, l.url, &raw); err != nil {
		return c, err
	}
	seen := map[string]bool{}
	for _, d := range raw.Data {
		for _, p := range d.Paragraphs {
			if !seen[p.Context] && len(seen) < maxParagraphs {
				seen[p.Context] = true
				p.addTo(&c, len(seen))
			}
		}
	}
	c.questions = c.questions[:min(len(c.questions), maxQuestions)]
	return c, nil
}

type paragraph struct {
	Context string
	QAs     []struct {
		Question string
		Answers  []struct {
			Start int `json:"answer_start"` // in characters
		}
	}
}

var sentence = regexp.MustCompile(`[^.!?।。！？\n]+(?:[.!?।。！？\n]+|$)(?:\S+[.!?]+)*`)

// addTo adds the sentences of paragraph n, in an hour of its own.
func (p *paragraph) addTo(c *collection, n int) {
	answered := make([]string, len(p.QAs))
	for i, span := range sentence.FindAllStringIndex(p.Context, -1) {
		text := strings.TrimSpace(p.Context[span[0]:span[1]])
		if runes := []rune(text); len(runes) > 800 {
			text = string(runes[:800])
		}
		if text == "" {
			continue
		}
		id := fmt.Sprint(n, ".", i)
		c.items = append(c.items, item{id, text, c.now.Add(time.Duration(n)*3*time.Hour - 10000*time.Hour + time.Duration(i)*time.Minute)})
		begin, end := utf8.RuneCountInString(p.Context[:span[0]]), utf8.RuneCountInString(p.Context[:span[1]])
		for q := range p.QAs {
			if start := p.QAs[q].Answers[0].Start; start >= begin && start < end {
				answered[q] = id
			}
		}
	}
	for q, id := range answered {
		if id != "" {
			c.questions = append(c.questions, question{p.QAs[q].Question, map[string]bool{id: true}, heldOut(c.name, p.QAs[q].Question)})
		}
	}
}
