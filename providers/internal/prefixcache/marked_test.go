package prefixcache

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// blocksOf reads a request as a row of words: NAME:TOKENS, and a mark behind it:
// ! for five minutes, !! for an hour.
func blocksOf(words string) []Block {
	var out []Block
	for word := range strings.FieldsSeq(words) {
		name := strings.TrimRight(word, "!")
		b := Block{Text: name}
		if _, err := fmt.Sscanf(name[strings.IndexByte(name, ':')+1:], "%d", &b.Tokens); err != nil {
			panic(err)
		}
		b.Keep = []time.Duration{0, 5 * time.Minute, time.Hour}[len(word)-len(name)]
		out = append(out, b)
	}
	return out
}

// sent is one request, and what is to come of it.
type sent struct {
	// at is minutes since the beginning.
	at     float64
	blocks string
	want   Usage
}

func moment(minutes float64) time.Time {
	return time.Time{}.Add(time.Duration(minutes * float64(time.Minute)))
}

func TestMarked(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		sent []sent
	}{
		{"nothing is marked", []sent{
			{0, "a:100 b:100", Usage{Input: 200}},
			{1, "a:100 b:100", Usage{Input: 200}},
		}},
		{"the same again", []sent{
			{0, "a:100 b:100! c:7", Usage{207, 0, 200}},
			{1, "a:100 b:100! c:7", Usage{207, 200, 0}},
		}},
		{"only what is marked is kept", []sent{
			{0, "a:100 b:100 c:100!", Usage{300, 0, 300}},
			{1, "a:100 b:100! x:100", Usage{300, 0, 200}},
		}},
		{"the longest", []sent{
			{0, "a:100! b:100! c:100!", Usage{300, 0, 300}},
			{1, "a:100! b:100! x:100!", Usage{300, 200, 100}},
			{2, "a:100! y:100! c:100!", Usage{300, 100, 200}},
		}},
		{"a change in front of it", []sent{
			{0, "a:100 b:100!", Usage{200, 0, 200}},
			{1, "x:100 b:100!", Usage{200, 0, 200}},
		}},
		{"the same text in other blocks", []sent{
			{0, "ab:200!", Usage{200, 0, 200}},
			{1, "a:100 b:100!", Usage{200, 0, 200}},
		}},
		{"a conversation that grows", []sent{
			{0, "s:100 u1:50!", Usage{150, 0, 150}},
			{1, "s:100 u1:50 a1:30 u2:50!", Usage{230, 150, 80}},
			{2, "s:100 u1:50 a1:30 u2:50 a2:30 u3:50!", Usage{310, 230, 80}},
		}},
		{"a prefix below the minimum", []sent{
			{0, "a:99! b:1", Usage{Input: 100}},
			{1, "a:99! b:1!", Usage{100, 0, 100}},
			{2, "a:99! b:1!", Usage{100, 100, 0}},
		}},
		{"twenty blocks back, its own included", []sent{
			{0, "s:100!", Usage{100, 0, 100}},
			{1, "s:100 " + strings.Repeat("x:1 ", 18) + "z:1!", Usage{119, 100, 19}},
		}},
		{"twenty-one blocks back", []sent{
			{0, "s:100!", Usage{100, 0, 100}},
			{1, "s:100 " + strings.Repeat("x:1 ", 19) + "z:1!", Usage{120, 0, 120}},
		}},
		{"twenty-one blocks back, with a mark between", []sent{
			{0, "s:100!", Usage{100, 0, 100}},
			{1, "s:100 " + strings.Repeat("x:1 ", 9) + "y:1! " + strings.Repeat("x:1 ", 9) + "z:1!", Usage{120, 100, 20}},
		}},
		{"five minutes", []sent{
			{0, "a:100!", Usage{100, 0, 100}},
			{5, "a:100!", Usage{100, 100, 0}},
			{10, "a:100!", Usage{100, 100, 0}}, // each use begins them anew
			{15.1, "a:100!", Usage{100, 0, 100}},
		}},
		{"found from another mark, it lives on", []sent{
			{0, "a:100!", Usage{100, 0, 100}},
			{4, "a:100 b:1!", Usage{101, 100, 1}},
			{8, "a:100!", Usage{100, 100, 0}},
		}},
		{"an hour", []sent{
			{0, "a:100!! b:100!", Usage{200, 0, 200}},
			{50, "a:100!! b:100!", Usage{200, 100, 100}},
			{100, "a:100!", Usage{100, 100, 0}},
			{155, "a:100!", Usage{100, 100, 0}}, // what was kept for an hour stays so
		}},
		{"what has ended is kept as it is asked for next", []sent{
			{0, "a:100!!", Usage{100, 0, 100}},
			{61, "a:100!", Usage{100, 0, 100}},
			{67, "a:100!", Usage{100, 0, 100}},
		}},
		{"an empty request", []sent{{0, "", Usage{}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			c := NewMarked(MarkedRules{MinimumTokens: 100, Marks: 4, Lookback: 20})
			for i, s := range tt.sent {
				got, err := c.Serve(moment(s.at), blocksOf(s.blocks))
				if diff := cmp.Diff(got, s.want); diff != "" || err != nil {
					t.Errorf("request %d: %v (-got +want):\n%s", i, err, diff)
				}
			}
		})
	}
}

func TestMarkedRefuses(t *testing.T) {
	t.Parallel()

	c := NewMarked(MarkedRules{MinimumTokens: 1, Marks: 4, Lookback: 20})
	for name, words := range map[string]string{
		"five marks":              "a:1! b:1! c:1! d:1! e:1!",
		"long behind short":       "a:1! b:1!!",
		"long behind long, short": "a:1!! b:1!! c:1! d:1!!",
	} {
		if u, err := c.Serve(moment(0), blocksOf(words)); err == nil || u != (Usage{}) {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
	}
	// What is refused is not kept.
	if u, err := c.Serve(moment(0), blocksOf("a:1!")); err != nil || u.Read != 0 {
		t.Errorf("%+v, %v", u, err)
	}
}

// TestMarkedProperties: a marked cache reads no more than what is alike with some
// request before, never less than the same request a moment ago left there, and
// nothing after the longest lifetime.
func TestMarkedProperties(t *testing.T) {
	t.Parallel()

	rng := rand.New(rand.NewPCG(2, 9))
	c := NewMarked(MarkedRules{MinimumTokens: 4, Marks: 4, Lookback: 20})
	alike := NewAutomatic(AutomaticRules{Lifetime: time.Hour, Count: func(string) int { return 0 }})
	now, hits := 0.0, 0
	var blocks []Block
	for range 2000 {
		now += rng.Float64()
		blocks = make([]Block, 1+rng.IntN(12))
		for i := range blocks {
			blocks[i] = Block{Text: fmt.Sprint(i, rng.IntN(2)), Tokens: 1 + i}
		}
		for range rng.IntN(5) {
			blocks[rng.IntN(len(blocks))].Keep = 5 * time.Minute
		}
		u, err := c.Serve(moment(now), blocks)
		if err != nil {
			t.Fatal(err)
		}
		if most := alike.Serve(moment(now), blocks); u.Read > most.Read || u.Read+u.Written > u.Input {
			t.Fatalf("%+v, and alike are %d", u, most.Read)
		}
		if u.Read > 0 {
			hits++
		}
		again, err := c.Serve(moment(now), blocks)
		if want := u.Read + u.Written; err != nil || again.Read != want || again.Written != 0 {
			t.Fatalf("the same again: %+v, %v, want %d read", again, err, want)
		}
	}
	if hits < 200 {
		t.Errorf("only %d requests found something", hits)
	}
	blocks[len(blocks)-1].Keep = 5 * time.Minute
	if u, err := c.Serve(moment(now+5.1), blocks); err != nil || u.Read != 0 {
		t.Errorf("after five minutes: %+v, %v", u, err)
	}
}

func TestShare(t *testing.T) {
	t.Parallel()

	if got := (Usage{}).Share(); got != 0 {
		t.Errorf("share of nothing = %v", got)
	}
	u := Usage{Input: 10, Read: 1, Written: 2}
	u.Add(Usage{Input: 10, Read: 4, Written: 1})
	if u != (Usage{20, 5, 3}) || u.Share() != 0.25 {
		t.Errorf("sum = %+v, share %v", u, u.Share())
	}
}
