// Package sdk is what plugin authors import.
//
// A plugin is data, and a driver runs it: one [Plugin] literal with a name, a version and its hooks, each hook with
// one typed handler. The compiler checks every signature; what is nil is not subscribed.
//
//	var plugin = &sdk.Plugin{
//		Name:    "greeter",
//		Version: "1.0.0",
//		Hooks: []sdk.Hook{{
//			Name:  "greet",
//			Kinds: []phases.Kind{phases.KindPromptSection},
//			PrePromptCompile: func(ctx context.Context, call *sdk.Call, in *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
//				return sdk.Reply(&phases.PromptSection{SectionID: "greeting", Title: "Greeting", Content: "Be kind."})
//			},
//		}},
//	}
//
//	func main() { serve.Main(plugin) }
//
// # How a call runs
//
//  1. The host starts the program and asks for its description ([Plugin.Describe]).
//  2. It sends the operator's configuration ([Plugin.Configure]); a plugin whose
//     hooks or tools depend on it returns them from OnConfigure.
//  3. It calls hooks and tools, several at once, each with a deadline in its
//     context. A handler that ignores cancellation delays only itself; after
//     a few of those the host restarts the process.
//  4. At the end it calls [Plugin.Close], for plugins that have started
//     something of their own.
//
// Handlers get their powers as values: [Call] carries context, budgets, sets and the host. They return contributions,
// or an error: an [*phases.Error] has the plugin's own code, any other error is reported as "error".
//
// # Text for a prompt
//
// Text from files, users and other programs may try to look like the lines and tags around it. A plugin that composes
// several texts into one section usually takes these steps; one with a single text and a [phases.Frame] can leave them to
// the host, which normalises, escapes and cuts each section again, by the same rules.
//
//  1. [CleanText] makes it valid UTF-8 with LF newlines. [OneLine] and [PlainName] do so for a text that has to stay on
//     one line, such as an entry of a list or a path.
//  2. [Escaper.Escape] puts a backslash into whatever reads like one of the plugin's own tags or lines.
//  3. [Escaper.Cut], [CutLine], [CutText] or [LongestPrefix] shortens it to a limit, in Unicode scalar values
//     ("characters") as in every limit that a host sets.
//  4. [SectionSize] says how many characters of the text budget it will use.
//
// # What is not here
//
// gRPC, processes and sockets are in package sdk/serve, so that a plugin can be tested, or run inside a host,
// without linking them. The test kit is sdk/plugintest.
//
// Stability: experimental until 1.0.
package sdk
