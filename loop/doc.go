// Package loop is what every agent loop does around its model, so that a host cannot forget or misuse a part of it:
//
//	t, err := loop.Begin(ctx, eng, where, loop.Options{Input: runtime.CompileInput{UserText: message, ToolCalling: true}, Tools: own})
//	if err != nil {
//		return err // a *Refused says who refused the message, and why
//	}
//	defer func() { err = t.Done(ctx, answer, err) }()
//	for {
//		p, err := t.Prompt(ctx)                 // the text, the tools, and the reminders of this round
//		…                                       // send them with the conversation
//		err = t.Used(ctx, reply.Usage)
//		if len(reply.Calls) == 0 {
//			reason, err := t.GoOn(ctx, reply.Text)
//			if err != nil || reason == "" {
//				return err
//			}
//			…                                   // the text and, as words of the user's, the reason go to the model
//		}
//		for _, c := range reply.Calls {
//			result, err := t.Tool(ctx, c)       // checked, asked about, rewritten, called, checked again
//			…                                   // the result goes to the model, whatever became of the call
//		}
//	}
//
// Everything that plugins have to say reaches the model: refusals are results, reminders come with the next prompt, and
// the reason why a turn must not end yet is another message.
// Decisions of hooks and trimmed results are reminders, too (permission.decision, tool.output.trimmed). What the turn
// has used and called is reported by Done.
//
// A host that begins turns itself wraps them ([Wrap]). One that cannot wait for a person's answer, as it comes with another
// request, has its Ask return [ErrNotYet].
//
// It is not a framework: the host keeps its model, its conversation (package history) and its concurrency. A host that
// needs more calls the phases of the [runtime.Turn] inside [Turn]. A framework that calls tools itself uses
// [Turn.RunTool]; one that cannot be wrapped, [Turn.CheckTool] and [Turn.FinishTool].
//
// Stability: experimental until 1.0.
package loop
