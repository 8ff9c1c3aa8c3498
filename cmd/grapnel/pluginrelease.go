package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/runtime"
)

// releaseResult is the JSON of plugin release.
type releaseResult struct {
	Target string `json:"target" jsonschema:"where the gateway is called"`
	runtime.Released
}

// pluginReleaseCommand gives a plugin of a running gateway another chance.
func (a *app) pluginReleaseCommand() *cobra.Command {
	var f reachFlags
	c := &cobra.Command{
		Use:   "release NAME",
		Short: "Have a running gateway start a quarantined plugin again",
		Long: "Release starts a plugin of a running gateway at once that is in quarantine, or waits for its\n" +
			"next start, with its failures forgotten, and closes the breakers of its hooks. Of a plugin that\n" +
			"takes calls only breakers are closed. It waits for the start: one that failed again is told,\n" +
			"with exit code 1. Without --url or --socket it is the one gateway of yours that runs on this\n" +
			"machine. With tokens it takes one with the right admin.",
		Example: "  grapnel plugin release house",
		Args:    exactlyOne("plugin release takes the name of one plugin"),
		RunE:    func(c *cobra.Command, args []string) error { return a.pluginRelease(c.Context(), &f, args[0]) },
	}
	f.register(c)
	return c
}

// pluginRelease asks and prints.
func (a *app) pluginRelease(ctx context.Context, f *reachFlags, plugin string) error {
	var result releaseResult
	target, err := f.ask(ctx, "plugin/release", map[string]any{"plugin": plugin}, &result.Released)
	if err != nil {
		return err
	}
	result.Target = target
	if a.json {
		err = a.printJSON(result)
	} else {
		a.printf("%s\n", releasedText(&result.Released))
	}
	if err == nil && !result.Up() {
		return answerNo()
	}
	return err
}

// releasedText is what became of it, as a sentence.
func releasedText(r *runtime.Released) string {
	var text string
	switch {
	case r.From == r.State && r.Up():
		text = fmt.Sprintf("the plugin %s is %s", clean(r.Plugin), r.State)
	case r.Up():
		text = fmt.Sprintf("the plugin %s was %s and is %s", clean(r.Plugin), r.From, r.State)
	default:
		text = fmt.Sprintf("the plugin %s was %s and was started again; now it is %s", clean(r.Plugin), r.From, r.State)
		if r.Code != "" {
			text += fmt.Sprintf(": %s (%s)", strings.TrimSuffix(clean(r.Detail), " ("+r.Code+")"), r.Code)
		}
	}
	if len(r.Breakers) > 0 {
		text += "; breakers closed: " + strings.Join(r.Breakers, ", ")
	}
	return text
}
