package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/internal/persona"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// keep seals the manifest and hands it to the sink with the texts that the operator wants kept. A failure is always
// reported, and an error if the operator wants the turn refused.
func (r *recording) keep(ctx context.Context, m *manifest.Manifest) error {
	e := r.turn.engine
	if e.keeper == nil {
		r.turn.state.Kept()
		return manifest.Seal(m, nil, nil)
	}
	own := m.Clone() // a sink that hangs may use it for ever
	err := e.append(ctx, &own, slices.Concat(r.output.Texts, r.turn.state.Texts(&own)))
	if err == nil {
		r.turn.state.Kept()
		m.Seq, m.Integrity = own.Seq, own.Integrity
		return nil
	}
	code := e.sinkFailed(stateNotKept, "the manifest was not kept", r.id, err)
	r.output.Diagnostics = append(r.output.Diagnostics, phases.Diagnostic{
		Code: codeNotKept, Severity: phases.SeverityError, Message: "the manifest of this turn was not kept (" + string(code) + ")",
	})
	if r.turn.gen.cfg.Manifest.OnFailure == "refuse" {
		return phases.Errorf(code, "the manifest could not be kept: %w", err)
	}
	return manifest.Seal(m, nil, nil)
}

// previous returns the last prompt of the turn's thread, one of those that an agent's request has around it or a whole one;
// nil, with a diagnostic, if it cannot be read.
func (r *recording) previous(ctx context.Context, ofAgent bool) *manifest.Outline {
	last, err := r.turn.engine.lastPrompt(ctx, r.turn.context, ofAgent)
	if err != nil {
		code := r.turn.engine.sinkFailed(codePreviousUnavailable, "the thread's previous manifest cannot be read", r.id, err)
		r.notes = append(r.notes, phases.Diagnostic{
			Code: codePreviousUnavailable, Severity: phases.SeverityWarning,
			Message: "the previous manifest of this thread could not be read (" + string(code) + "): nothing is known of the provider's cache",
		})
		return nil
	}
	return last
}

type recording struct {
	turn   *Turn
	id     string
	round  int
	now    time.Time
	output compiler.Output
	// draft is what the manifest holds of the output, once it is known.
	draft *manifest.Manifest
	// before is the thread's previous prompt, and outline what the next one compares itself with.
	before, outline *manifest.Outline
	// notes are diagnostics from before the output.
	notes []phases.Diagnostic
	// persona are the persona files, once they have been read.
	persona *persona.Files
	in      *CompileInput
}

func (t *Turn) newRecording(in *CompileInput) (*recording, error) {
	now := t.engine.opts.Now()
	id, err := t.engine.newID(now)
	if err != nil {
		return nil, err
	}
	return &recording{turn: t, id: id, round: t.state.NextRound(), now: now, in: in}, nil
}

// compile prepares the prompt, dispatches turn.pre_prompt_compile, renders, and dispatches turn.post_prompt_compile.
func (r *recording) compile(ctx context.Context, in *CompileInput) (*manifest.Manifest, error) {
	t := r.turn
	own := make([]string, len(in.Custom))
	for i := range in.Custom {
		own[i] = in.Custom[i].SectionID
	}
	t.state.Claim(own)
	input := r.input(in)
	r.before = r.previous(ctx, in.HooksOnly)
	input.Previous = compiler.PreviousOf(r.before, r.now, t.context.SessionID)
	prepared, err := compiler.Prepare(input)
	if err != nil {
		return nil, err
	}
	_, err = t.dispatch(ctx, &phases.PrePromptCompileInput{
		ToolCalling: in.ToolCalling, AvailableTools: turnstate.ToolNames(prepared.Offered, in.ExistingTools), Sections: prepared.Sections,
	})
	if err != nil {
		return nil, err
	}
	if r.output, err = prepared.Render(t.state.Contributed()); err != nil {
		return nil, err
	}
	r.output.Diagnostics = slices.Concat(r.output.Diagnostics, r.notes, t.state.Undelivered(r.output.Sections, r.output.Omitted))
	if in.HistoryOf != nil {
		in.History = in.HistoryOf(&r.output.Prompt, turnstate.Definitions(r.output.Offered))
	}
	encoded := json.RawMessage("{}") // for no hook
	if len(t.gen.planned.Load().phases[phases.PostPromptCompile].Expected) > 0 {
		if encoded, err = manifest.Canonical(r.manifest()); err != nil {
			return nil, err
		}
	}
	out, err := t.dispatch(ctx, &phases.PostPromptCompileInput{Manifest: encoded, PromptText: phases.T(r.output.Prompt.FullText)})
	if err == nil {
		err = turnstate.Blocked(out)
	}
	return r.manifest(), err // with the ledger of the last phase
}

// input is what the prompt depends on, without the hooks of turn.pre_prompt_compile.
func (r *recording) input(in *CompileInput) compiler.Input {
	t := r.turn
	t.state.Ask(in.RequestedDomains)
	input := r.known(in)
	input.Profile, input.Order, input.Host, input.Custom, input.Limits = cmp.Or(in.Profile, t.context.Profile), in.Order, in.Host, in.Custom, in.Limits
	input.Facts, input.MoveUnstable, input.HooksOnly, input.ToolCalling, input.ExistingTools = in.Facts, in.MoveUnstable, in.HooksOnly, in.ToolCalling, in.ExistingTools
	input.Tools, input.RequestedDomains = t.state.Tools(), t.state.Requested()
	input.Facts.Date = cmp.Or(input.Facts.Date, t.context.Now.Format(time.DateOnly))
	r.readPersona(&input)
	for _, path := range in.HostFiles {
		input.Files = append(input.Files, manifest.File{Path: path, Status: manifest.FileOfHost})
	}
	return input
}

// known is what the record of any prompt depends on besides its text.
func (r *recording) known(in *CompileInput) compiler.Input {
	t, o := r.turn, &r.turn.engine.opts
	input := compiler.Input{
		Provider: in.Provider, Model: in.Model, CountTokens: o.CountTokens, Tokenizer: o.TokenizerName, KeepTexts: o.Sink != nil && t.gen.cfg.Manifest.KeepText,
		FingerprintKey: t.gen.key,
	}
	if o.CacheRules != nil {
		if rules, ok := o.CacheRules(in.Provider, in.Model); ok {
			input.CacheRules = &rules
		}
	}
	return input
}

// readPersona reads the persona files, once a recording, and gives their texts to the sections without a text of the
// host's. Errors are diagnostics.
func (r *recording) readPersona(in *compiler.Input) {
	dir := r.turn.engine.opts.PersonaDir
	if dir == "" {
		return
	}
	first := r.persona == nil
	if first {
		files := persona.Load(dir)
		r.persona = &files
	}
	texts := []*string{&in.Host.SoulCore, &in.Host.IdentityCore, &in.Host.UserPersona}
	for i, f := range r.persona.All() {
		if *texts[i] != "" {
			continue
		}
		*texts[i] = f.Text
		row := f.Row
		row.Chars = 0 // the compiler counts them
		in.Files = append(in.Files, row)
		if first {
			r.notes = append(r.notes, f.Diagnostics...)
		}
	}
}

// blocked is the result of a turn whose prompt must not be sent. Its manifest is kept for auditors.
func (r *recording) blocked(ctx context.Context, in *CompileInput, err error) (*Compiled, error) {
	if r.output.Profile == "" { // blocked before there was a prompt: fingerprints of an empty one
		input := r.input(in)
		r.output.Profile, r.output.Files, r.output.Diagnostics = input.Profile, input.Files, r.notes
		r.output.Fingerprints = manifest.EmptyFingerprints(input.FingerprintKey)
	}
	r.in.KeepReminders = true
	m := r.manifest()
	m.Runs = append(m.Runs, r.turn.skipped(ctx, in)...)
	// No provider has seen the prompt.
	m.Blocked, m.Cache = true, manifest.Cache{Provider: m.Cache.Provider, Model: m.Cache.Model}
	if kept := r.keep(ctx, m); kept != nil {
		err = errors.Join(err, kept)
	}
	return r.refused(m, err)
}

// refused is the result of a turn whose prompt is not delivered. Its reminders wait for another one.
func (r *recording) refused(m *manifest.Manifest, err error) (*Compiled, error) {
	done := r.compiled(nil, m)
	r.turn.state.Requeue(done.Reminders)
	done.Reminders, done.Error = []phases.MergedReminder{}, codedError(err)
	return done, err
}

func (r *recording) compiled(prompt *compiler.Prompt, m *manifest.Manifest) *Compiled {
	s := r.turn.state
	return &Compiled{
		Prompt: prompt, Manifest: m, Tools: turnstate.Definitions(r.output.Offered), Reminders: s.TakeReminders(), Diagnostics: append(s.Diagnostics(), r.output.Diagnostics...),
	}
}

// manifest is the record of the compilation with the turn's ledger as it is now. keep seals it.
func (r *recording) manifest() *manifest.Manifest {
	t := r.turn
	if r.draft == nil {
		m := r.output.Manifest()
		profile := m.Profile
		m.Head = turnstate.Head(t.gen.head, new(t.Context()))
		m.ManifestID, m.Round, m.CreatedAt, m.Profile, m.TextsKept = r.id, r.round, r.now, profile, len(r.output.Texts) > 0
		m.HostTools, m.History = t.gen.tools.Rows(r.in.ExistingTools, r.in.HostTools, t.gen.key), turnstate.History(r.in.History, t.gen.key)
		r.draft = &m
	}
	m := *r.draft
	m.Diagnostics = slices.Clip(m.Diagnostics)
	m.Plugins = turnstate.AuditedRows(t.gen.rows().rows)
	t.state.Record(&m, t.gen.cfg.Budgets.Turn, t.oneShot)
	if r.in.KeepReminders {
		m.Reminders = slices.DeleteFunc(m.Reminders, func(r manifest.Reminder) bool { return r.With == "" })
	}
	r.outline = m.Judge(r.before)
	t.gen.hashLabels(&m)
	return &m
}
