package runtime_test

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
	"github.com/grapnelhq/grapnel/phases"
)

// manners is how a script describes itself and answers when it does no harm.
func manners(change string) rawPlugin {
	return rawPlugin{
		Name: "hostile", Version: "1.0.0", Hooks: []string{"h"}, Change: wireDescriptions()[change],
		Phase: hostilePhase, Kinds: kindsOf(harmlessKinds()),
	}
}

// harmlessKinds are those of hooks that are called side by side.
func harmlessKinds() []phases.Kind {
	return []phases.Kind{
		phases.KindPromptSection, phases.KindPromptContext, phases.KindReminder, phases.KindManifestDiagnostic, phases.KindAudit, phases.KindBackgroundJob, phases.KindNoop,
	}
}

func kindsOf(kinds []phases.Kind) []string {
	var words []string
	for _, k := range kinds {
		words = append(words, string(k))
	}
	return words
}

// moment is a time in a session at which a frame is out of order.
type moment func(p *badProgram, body string) rawScript

// moments are all of them.
func moments() map[string]moment {
	return map[string]moment{
		"before-describe":   instead((*pluginpb.HostFrame_Hello)(nil), false),
		"before-configured": instead((*pluginpb.HostFrame_Configure)(nil), false),
		"in-answer":         instead((*pluginpb.HostFrame_Dispatch)(nil), false),
		"after-cancel":      instead((*pluginpb.HostFrame_Cancel)(nil), true),
		"after-drain":       instead((*pluginpb.HostFrame_Drain)(nil), true),
		"unknown-ids":       outOfTheBlue([]uint64{0, 1 << 40, math.MaxUint64}, 1),
		"ids-of-others":     outOfTheBlue([]uint64{1, 2, 3, 4, 5, 6, 7, 8}, 1),
		"repeated":          outOfTheBlue([]uint64{0, 1, 2, 3}, 300),
	}
}

// frameAttacks are each body of a frame at each wrong moment.
func frameAttacks() map[string]func(*badProgram) error {
	all := map[string]func(*badProgram) error{}
	for when, script := range moments() {
		for _, body := range frameBodies() {
			name := "frame-" + when + "-" + strings.ReplaceAll(body, "_", "-")
			all[name] = func(p *badProgram) error { return p.ServeScript(script(p, body)) }
		}
	}
	all["frame-flood"] = func(p *badProgram) error { // answers what nobody asked, as fast as it can
		return p.attack("", func(s *rawSession, f *rawFrame) error {
			for i := range uint64(30_000) {
				if err := s.Send(emptyBody("pong", 1<<40+i, f.Incarnation)); err != nil {
					return err
				}
			}
			return answerWith(s, f, rightText)
		})
	}
	all["frame-incarnations"] = func(p *badProgram) error { // answers for other starts of itself
		return p.attack("", func(s *rawSession, f *rawFrame) error {
			for _, n := range []uint64{0, 1 << 40, math.MaxUint64} {
				if err := s.Send(sectionFrame(f.ID, n, wrongText)); err != nil {
					return err
				}
			}
			return answerWith(s, f, rightText)
		})
	}
	return all
}

// instead sends a frame with the id of one of the host's, before the answer, or in
// place of it. The Dispatch of a Cancel stays open until it is cancelled.
func instead[T any](_ T, silent bool) moment {
	return func(p *badProgram, body string) rawScript {
		return func(s *rawSession) error {
			var said atomic.Bool
			return eachFrame(s, func(f *rawFrame) error {
				_, now := f.Body.(T)
				_, dispatch := f.Body.(*pluginpb.HostFrame_Dispatch)
				var err error
				if (now || dispatch) && !said.Swap(true) {
					p.did("done") // before the host can end the process for it
				}
				if now {
					err = errors.Join(s.Send(emptyBody(body, f.ID, f.Incarnation)), s.Send(emptyBody(body, f.ID, f.Incarnation)))
				}
				switch reply := manners("").Reply(f); {
				case dispatch && !silent:
					err = errors.Join(err, answerWith(s, f, rightText))
				case reply != nil:
					err = errors.Join(err, s.Send(reply))
				}
				return err
			})
		}
	}
}

// outOfTheBlue sends frames with ids of its own choice during a dispatch.
func outOfTheBlue(ids []uint64, times int) moment {
	return func(p *badProgram, body string) rawScript {
		return answering(manners(""), func(s *rawSession, f *rawFrame) error {
			p.did("done") // before the host can end the process for it
			for _, id := range slices.Repeat(ids, times) {
				if err := s.Send(emptyBody(body, id, f.Incarnation)); err != nil {
					return err
				}
			}
			return answerWith(s, f, rightText)
		})
	}
}

// eachFrame calls handle with each frame of the host's.
func eachFrame(s *rawSession, handle func(*rawFrame) error) error {
	for {
		f, err := s.Receive()
		if err == nil {
			err = handle(f)
		}
		if err != nil {
			return err
		}
	}
}

// attack serves a script that does harm in a dispatch, and says so before the host can end the process for it.
func (p *badProgram) attack(description string, harm func(s *rawSession, f *rawFrame) error) error {
	return p.ServeScript(answering(manners(description), func(s *rawSession, f *rawFrame) error {
		p.did("done")
		return harm(s, f)
	}))
}

// describeAttacks describe themselves in each way that harms.
func describeAttacks() map[string]func(*badProgram) error {
	all := map[string]func(*badProgram) error{}
	for name := range wireDescriptions() {
		all["describe-"+name] = func(p *badProgram) error {
			p.did("done") // before the host can end the process for it
			return p.ServeScript(answering(manners(name), func(s *rawSession, f *rawFrame) error { return answerWith(s, f, rightText) }))
		}
	}
	return all
}

// answerAttacks answer a dispatch with what harms, or not at all.
func answerAttacks() map[string]func(*badProgram) error {
	all := map[string]func(*badProgram) error{
		"answer-extremes": (*badProgram).answerExtremes,
		"answer-never":    func(p *badProgram) error { return p.attack("", func(*rawSession, *rawFrame) error { return nil }) },
	}
	for name, answer := range costlyAnswers() {
		all["answer-"+name] = func(p *badProgram) error {
			manners := manners("")
			manners.DeafTools = name == "jobs-never-done"
			return p.ServeScript(answering(manners, func(s *rawSession, f *rawFrame) error {
				p.did("done")
				return s.Send(answer.frame(f.ID, f.Incarnation))
			}))
		}
	}
	return all
}

// answerExtremes goes through all extremes, one a dispatch, and says how many there
// are.
func (p *badProgram) answerExtremes() error {
	all := extremes()
	next := 0
	p.did(strconv.Itoa(len(all)))
	manners := manners("")
	manners.Kinds = kindsOf(phases.Kinds())
	return p.ServeScript(answering(manners, func(s *rawSession, f *rawFrame) error {
		e := all[next%len(all)]
		next++
		return s.Send(resultFrame(f.ID, f.Incarnation, e))
	}))
}

// hostCallAttacks ask the host for more than it can give, 300 times: more than a session takes at once.
func hostCallAttacks() map[string]func(*badProgram) error {
	flood := func(times uint64, frame func(i uint64, f *rawFrame) []byte) func(*badProgram) error {
		return func(p *badProgram) error {
			return p.attack("some-tags", func(s *rawSession, f *rawFrame) error {
				for i := range times {
					if err := s.Send(frame(i, f)); err != nil {
						return err
					}
				}
				return answerWith(s, f, rightText)
			})
		}
	}
	call := func(service, method, params string) func(*badProgram) error {
		return flood(300, func(i uint64, f *rawFrame) []byte {
			return hostCallFrame(i+1, f.Incarnation, f.ID, service, method, []byte(params))
		})
	}
	return map[string]func(*badProgram) error{
		"hostcall-state-flood":   call("state", "put", `{"key":"k","value":"v"}`),
		"hostcall-model-flood":   call("model", "complete", `{"messages":[{"role":"user","text":"x"}]}`),
		"hostcall-unknown-flood": call(strings.Repeat("s", 1000), strings.Repeat("m", 1000), "{}"),
		"hostcall-deep-json":     call("state", "put", strings.Repeat("[", 20_000)),
		"hostcall-parents": flood(300, func(i uint64, f *rawFrame) []byte {
			return hostCallFrame(i+1, f.Incarnation, math.MaxUint64-i, "state", "get", []byte(`{"key":"k"}`))
		}),
		"hostcall-invalidate-flood": flood(10, func(i uint64, f *rawFrame) []byte {
			return invalidateFrame(i, f.Incarnation, slices.Repeat([]string{"t"}, 300_000))
		}),
		"hostcall-unread": (*badProgram).askAndDoNotRead,
	}
}

// askAndDoNotRead asks the host all the time and never reads what it answers.
func (p *badProgram) askAndDoNotRead() error {
	return p.attack("", func(s *rawSession, f *rawFrame) error {
		params := []byte(`{"key":"` + strings.Repeat("k", 100) + `"}`)
		end := time.Now().Add(300 * time.Millisecond)
		for i := uint64(1); time.Now().Before(end); i++ {
			if err := s.Send(hostCallFrame(i, f.Incarnation, f.ID, "state", "get", params)); err != nil {
				return err
			}
		}
		return answerWith(s, f, rightText)
	})
}
