// Package loop does what every agent loop must do around its model, so that a host cannot forget or misuse a part of it:
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
//			…                                   // send the text and, as the user's message, the reason to the model
//		}
//		for _, c := range reply.Calls {
//			result, err := t.Tool(ctx, c)       // checked, asked about, rewritten, called, checked again
//			…                                   // send the result to the model, even if the call was refused or failed
//		}
//	}
//
// Everything that plugins say reaches the model: refusals are results, reminders come with the next prompt, and
// the reason why a turn must not end yet is another message. Decisions of hooks and trimmed results are also reminders
// (permission.decision, tool.output.trimmed). Done reports the turn's usage and calls.
//
// If the host begins turns itself, use [Wrap]. If a person's answer comes with another request, so that the host cannot
// wait for it, let Ask return [ErrNotYet].
//
// This is not a framework: the host keeps its model, its conversation (package history) and its concurrency. For anything
// else, call the phases of the [runtime.Turn] inside [Turn]. If a framework calls tools itself, use
// [Turn.RunTool]; if its calls cannot be wrapped, [Turn.CheckTool] and [Turn.FinishTool].
//
// Stability: experimental until 1.0.
package loop
