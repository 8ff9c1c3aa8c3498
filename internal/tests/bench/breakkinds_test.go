package bench

import (
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// breakKind is a kind of change between two turns. Change makes the i-th of its six variants and says what must be
// found; it may run turns of its own.
type breakKind struct {
	name string
	// reported is a kind that only a provider's report shows, and explicit one of Anthropic alone.
	reported, explicit bool
	change             func(th *thread, w *world, i int) manifest.Break
}

// Short forms of what must be found.
func at(cause manifest.Cause, section, owner, field string) manifest.Break {
	return manifest.Break{Cause: cause, BrokeAt: section, Owner: owner, Field: field}
}

func ofTool(name, field, owner string) manifest.Break {
	return manifest.Break{Cause: manifest.CauseTools, Tool: name, Field: field, Owner: owner}
}

func by(cause manifest.Cause, owner string) manifest.Break {
	return manifest.Break{Cause: cause, Owner: owner}
}

func because(b manifest.Break, c manifest.Cause) manifest.Break {
	b.Because = c
	return b
}

// dynamic are the authors of a section of their own in the dynamic part, in order.
func dynamic(i int) string { return []string{"ant", "bee", "cat", "dog"}[i%4] }

// part are those who write a part of the joined section.
func part(i int) string { return []string{"ant", "bee", "cat"}[i%3] }

func breakKinds() []breakKind {
	const host, text = phases.OwnerHost, manifest.CauseText
	rewrite := func(w *world, name string, i int) { w.authors[name].notes = prose(fmt.Sprintf("%d new", i), 300+100*i) }
	return []breakKind{
		{name: "nothing", change: func(*thread, *world, int) manifest.Break { return manifest.Break{} }},
		{name: "identity text", change: func(_ *thread, w *world, i int) manifest.Break {
			w.in.Host.Identity = prose("somebody else", 100*i+100)
			return at(text, "identity", host, "text")
		}},
		{name: "safety text", change: func(_ *thread, w *world, i int) manifest.Break {
			w.in.Host.Safety = prose("be good", 100*i+100)
			return at(text, "safety", host, "text")
		}},
		{name: "stable section of a plugin", change: func(_ *thread, w *world, i int) manifest.Break {
			rewrite(w, "elk", i)
			return at(text, "elk_notes", "elk", "text")
		}},
		{name: "dynamic section of a plugin", change: func(_ *thread, w *world, i int) manifest.Break {
			rewrite(w, dynamic(i), i)
			return at(text, dynamic(i)+"_notes", dynamic(i), "text")
		}},
		{name: "two sections", change: func(_ *thread, w *world, i int) manifest.Break {
			rewrite(w, "dog", i)
			rewrite(w, part(i), i)
			return at(text, part(i)+"_notes", part(i), "text")
		}},
		{name: "custom section", change: func(_ *thread, w *world, i int) manifest.Break {
			w.in.Custom[i%3].Text = prose("other", 150)
			return at(text, w.in.Custom[i%3].SectionID, host, "text")
		}},
		{name: "text of one in a joined section", change: func(_ *thread, w *world, i int) manifest.Break {
			w.authors[part(i)].shared = prose("other", 110+5*i)
			return at(text, "shared", part(i), "text")
		}},
		{name: "same length in a joined section", change: func(_ *thread, w *world, i int) manifest.Break {
			a := w.authors[part(i)]
			a.shared = "X" + a.shared[1:]
			return at(text, "shared", part(i), "text")
		}},
		{name: "somebody joins a section", change: func(_ *thread, w *world, i int) manifest.Break {
			w.authors["dog"].shared, w.authors["dog"].own = prose("dog joins", 60), 30*i
			return at(text, "shared", "dog", "added")
		}},
		{name: "somebody leaves a joined section", change: func(_ *thread, w *world, i int) manifest.Break {
			name := []string{"bee", "cat"}[i%2]
			w.authors[name].shared = ""
			return at(text, "shared", name, "removed")
		}},
		{name: "order in a joined section", change: func(th *thread, w *world, i int) manifest.Break {
			for _, name := range []string{"bee", "cat"} {
				w.authors[name].notes, w.authors[name].context, w.authors[name].priority = "", "", 70
			}
			th.restart()
			th.settle()
			if i%2 == 0 {
				w.authors["cat"].own = 10 + i // the contribution's own
			} else {
				w.authors["cat"].priority = 70 + i // the subscription's
				th.restart()
			}
			return at(text, "shared", "cat", "order")
		}},
		{name: "context of one", change: func(_ *thread, w *world, i int) manifest.Break {
			w.authors[part(i)].context = prose("now knows", 70+5*i)
			return at(text, "dynamic_context", part(i), "text")
		}},
		{name: "the host's dynamic context", change: func(_ *thread, w *world, i int) manifest.Break {
			w.in.Host.DynamicContext = prose("other facts", 60+10*i)
			return at(text, "dynamic_context", host, "text")
		}},
		{name: "context comes or goes", change: func(_ *thread, w *world, i int) manifest.Break {
			if i%2 == 0 {
				w.authors["dog"].context = prose("dog knows", 50)
				return at(text, "dynamic_context", "dog", "added")
			}
			w.authors[part(i)].context = ""
			return at(text, "dynamic_context", part(i), "removed")
		}},
		{name: "a plugin lowers its priority", change: func(th *thread, w *world, i int) manifest.Break {
			for _, name := range []string{"ant", "bee", "cat"} {
				w.authors[name].shared, w.authors[name].context = "", ""
			}
			th.settle()
			w.authors[dynamic(i%3)].priority = []int{75, 65, 55}[i%3]
			th.restart()
			return at(manifest.CauseOrder, dynamic(i%3)+"_notes", dynamic(i%3), "")
		}},
		{name: "a plugin raises its priority", change: func(th *thread, w *world, i int) manifest.Break {
			for _, name := range []string{"ant", "bee", "cat"} {
				w.authors[name].shared, w.authors[name].context = "", ""
			}
			th.settle()
			name := []string{"bee", "cat", "dog"}[i%3]
			w.authors[name].priority = []int{85 + 10, 75 + 10, 65 + 30}[i%3]
			th.restart()
			return at(manifest.CauseOrder, name+"_notes", name, "")
		}},
		{name: "a custom section elsewhere", change: func(_ *thread, w *world, i int) manifest.Break {
			w.in.Custom[2].Before = []string{"ant_notes", "bee_notes", "cat_notes"}[i%3]
			return at(manifest.CauseOrder, "mood", host, "")
		}},
		{name: "a plugin's section comes", change: func(th *thread, w *world, i int) manifest.Break {
			w.authors[dynamic(i)].notes = ""
			th.settle()
			rewrite(w, dynamic(i), i)
			return at(manifest.CauseInserted, dynamic(i)+"_notes", dynamic(i), "")
		}},
		{name: "a custom section comes", change: func(_ *thread, w *world, i int) manifest.Break {
			s := compiler.CustomSection{SectionID: "added", Text: prose("added", 120), After: []string{"identity", "elk_notes", "bee_notes", "dynamic_context", "place", "mood"}[i]}
			w.in.Custom = append(w.in.Custom[:3:3], s)
			return at(manifest.CauseInserted, "added", host, "")
		}},
		{name: "a plugin's section goes", change: func(_ *thread, w *world, i int) manifest.Break {
			w.authors[dynamic(i)].silent = true
			return at(manifest.CauseRemoved, dynamic(i)+"_notes", dynamic(i), "")
		}},
		{name: "a plugin fails", change: func(_ *thread, w *world, _ int) manifest.Break {
			w.authors["dog"].fails = true
			return at(manifest.CauseRemoved, "dog_notes", "dog", "")
		}},
		{name: "a custom section goes", change: func(_ *thread, w *world, i int) manifest.Break {
			gone := w.in.Custom[i%3].SectionID
			w.in.Custom = append(append([]compiler.CustomSection{}, w.in.Custom[:i%3]...), w.in.Custom[i%3+1:]...)
			return at(manifest.CauseRemoved, gone, host, "")
		}},
		{name: "the profile is smaller", change: func(_ *thread, w *world, _ int) manifest.Break {
			w.profile = phases.ProfileNone
			return because(at(manifest.CauseRemoved, "safety", host, ""), manifest.CauseProfile)
		}},
		{name: "a section is a message now", change: func(_ *thread, w *world, i int) manifest.Break {
			w.in.Custom[1+i%2].Placement = phases.PlacementUserMessage
			return at(manifest.CauseMoved, w.in.Custom[1+i%2].SectionID, host, "placement")
		}},
		{name: "a section is dynamic now", change: func(th *thread, w *world, i int) manifest.Break {
			if i%2 == 0 {
				w.in.Custom[0].Stability = phases.StabilityDynamic
				return at(manifest.CauseMoved, "manners", host, "stability")
			}
			w.authors["elk"].stable = false
			return at(manifest.CauseMoved, "elk_notes", "elk", "stability")
		}},
		{name: "definition of a tool", change: func(_ *thread, w *world, i int) manifest.Break {
			name := []string{"fetch", "look", "sit"}[i%3]
			w.authors["dog"].tools[name] = tool(name, "new")
			return ofTool(name, "definition", "dog")
		}},
		{name: "a tool comes", change: func(_ *thread, w *world, i int) manifest.Break {
			name := []string{"bark", "jump", "wait"}[i%3]
			w.authors[dynamic(i)].tools = map[string]phases.Tool{name: tool(name, "new")}
			if dynamic(i) == "dog" {
				w.authors["elk"].tools, w.authors["dog"].tools = w.authors["dog"].tools, map[string]phases.Tool{"fetch": tool("fetch", "f"), "look": tool("look", "l"), "sit": tool("sit", "s")}
				return ofTool(name, "added", "elk")
			}
			return ofTool(name, "added", dynamic(i))
		}},
		{name: "a tool goes", change: func(_ *thread, w *world, i int) manifest.Break {
			name := []string{"fetch", "look", "sit"}[i%3]
			delete(w.authors["dog"].tools, name)
			return ofTool(name, "removed", "dog")
		}},
		{name: "a hidden tool is asked for", change: func(th *thread, w *world, i int) manifest.Break {
			name := []string{"fetch", "look", "sit"}[i%3]
			t := w.authors["dog"].tools[name]
			t.HiddenDomain = "tricks"
			w.authors["dog"].tools[name] = t
			th.settle()
			w.in.RequestedDomains = []string{"tricks"}
			return ofTool(name, "hidden_domain", "dog")
		}},
		{name: "a tool is hidden", change: func(_ *thread, w *world, i int) manifest.Break {
			name := []string{"fetch", "look", "sit"}[i%3]
			t := w.authors["dog"].tools[name]
			t.HiddenDomain = "tricks"
			w.authors["dog"].tools[name] = t
			return ofTool(name, "hidden_domain", "dog")
		}},
		{name: "another plugin answers a tool", change: func(_ *thread, w *world, i int) manifest.Break {
			name := []string{"fetch", "look", "sit"}[i%3]
			w.authors["elk"].tools = map[string]phases.Tool{name: w.authors["dog"].tools[name]}
			delete(w.authors["dog"].tools, name)
			return ofTool(name, "owner", "elk")
		}},
		{name: "definition of a host's tool", change: func(th *thread, w *world, i int) manifest.Break {
			w.in.HostTools = []phases.Tool{tool("shell", "s"), tool("write", "w")}
			th.settle()
			name := []string{"shell", "write"}[i%2]
			w.in.HostTools = []phases.Tool{tool("shell", "s"), tool("write", "w")}
			w.in.HostTools[i%2] = tool(name, "new")
			return manifest.Break{Cause: manifest.CauseHost, Tool: name, Field: "definition", Owner: host}
		}},
		{name: "another model", change: func(_ *thread, w *world, i int) manifest.Break {
			if w.model += "-next"; i%2 == 1 {
				rewrite(w, "ant", i) // whatever else changed
			}
			return by(manifest.CauseModel, host)
		}},
		{name: "another provider", change: func(_ *thread, w *world, i int) manifest.Break {
			m := models()[(i+1)%3]
			w.provider, w.model = m[0], m[1]
			return by(manifest.CauseProvider, host)
		}},
		{name: "too late", change: func(th *thread, w *world, i int) manifest.Break {
			w.now = w.now.Add(time.Duration(i+11) * time.Minute)
			if w.provider == compiler.Gemini && !th.usage {
				return manifest.Break{} // nobody knows how long Gemini keeps a prompt
			}
			return by(manifest.CauseExpired, "")
		}},
		{name: "a short prompt", change: func(th *thread, w *world, _ int) manifest.Break {
			w.in.Host, w.in.Custom, w.history = compiler.HostTexts{}, nil, nil
			for _, a := range w.authors {
				a.notes, a.shared, a.context, a.tools = "", "", "", nil
			}
			th.settle()
			return manifest.Break{} // there was nothing to break
		}},
		{name: "no breakpoint is asked for", reported: true, explicit: true, change: func(th *thread, w *world, _ int) manifest.Break {
			w.ignorePlan = true
			return by(manifest.CausePoint, host)
		}},
		{name: "a fingerprint key", change: func(th *thread, w *world, i int) manifest.Break {
			if i%3 > 0 {
				w.key = "old"
				th.restart()
				th.settle()
			}
			w.key = []string{"new", "new", ""}[i%3]
			th.restart()
			return by(manifest.CauseKey, host)
		}},
		{name: "edited history", change: func(_ *thread, w *world, i int) manifest.Break {
			w.history = w.history[:len(w.history)-2]
			w.history[i%2] = prose("edited", 40)
			return by(manifest.CauseEdited, host)
		}},
		{name: "cut history", change: func(_ *thread, w *world, i int) manifest.Break {
			if w.history = w.history[2:]; i%2 == 0 {
				w.cut += 2
			} else {
				w.summarized += 2
			}
			return by(manifest.CauseCut, host)
		}},
		{name: "a compaction", change: func(_ *thread, w *world, _ int) manifest.Break {
			w.epoch++
			w.history = []string{prose("summary", 100)}
			return by(manifest.CauseEpoch, host)
		}},
		{name: "a blocked turn hides a change", change: func(th *thread, w *world, i int) manifest.Break {
			rewrite(w, dynamic(i), i)
			w.authors["elk"].denies = true
			th.turn()
			w.authors["elk"].denies = false
			return at(text, dynamic(i)+"_notes", dynamic(i), "text")
		}},
		{name: "another version of a plugin", change: func(th *thread, w *world, i int) manifest.Break {
			rewrite(w, dynamic(i), i)
			w.authors[dynamic(i)].version = "2.0.0"
			th.restart()
			return because(at(text, dynamic(i)+"_notes", dynamic(i), "text"), manifest.CauseVersion)
		}},
		{name: "another configuration", change: func(th *thread, w *world, i int) manifest.Break {
			rewrite(w, dynamic(i), i)
			w.turnTime = 20 * time.Second
			th.restart()
			return because(at(text, dynamic(i)+"_notes", dynamic(i), "text"), manifest.CauseConfig)
		}},
		{name: "the provider drops it", reported: true, change: func(_ *thread, w *world, _ int) manifest.Break {
			w.forgets = true
			return by(manifest.CauseUnknown, "")
		}},
	}
}
