// Package config reads grapnel.yaml, the operator's file, into a [Config].
//
// It is strict, because what a file does not say is not allowed and what it says
// wrongly must not be guessed at: unknown keys, wrong words, numbers without a
// unit, duplicate names and values out of range are all errors. Every error
// carries file, line, column, the line with a caret under the mistake and, for
// names, the nearest known one; all mistakes of a file are reported at once.
//
// # Where to start
//
// [Load] reads a file and [Parse] text; [Loader] does either with another
// environment. What a loaded Config cannot know by itself, because it takes the
// plugins' descriptions, is found by others, who report it with a place in the
// file through [Config.Errorf], [Config.ErrorAt] and [Config.PlanError].
// [Schema] is the same set of rules for editors, [Template] a file to begin with.
//
// # How it works
//
// yaml.go turns text into a small tree of nodes with positions; nothing else
// knows the YAML library. decode.go fills the structs of this package and of
// package phases from that tree by reflection. What a single key takes (words,
// bounds, whether it must be there) and its description stand in one table,
// rules.go, which the decoder and the schema share. What concerns several keys
// is in check.go.
//
// # What YAML is accepted
//
// One document of at most 1 MiB in UTF-8. Anchors, aliases, tags, merge keys and
// complex keys are refused: nothing in the file is longer than it looks. Plain
// scalars follow the core schema of YAML 1.2 (yes, no and dates are texts);
// numbers with leading zeros are refused, since programs disagree about them.
// A list or mapping without value counts as absent, a scalar without value is an
// error.
//
// # Secrets
//
// A whole scalar ${NAME} in plugins[].config, plugins[].env.set, store and
// manifest.fingerprint_key is taken from the environment. Such values print as
// "***" in every encoding of a Config, and no error message contains them.
//
// # What it is not
//
// It starts nothing, knows no plugin by name, compiles no condition and checks
// no plugin's own configuration. A command that is absent is not an error of the
// file: the plugin's start fails, and the other plugins work.
//
// Stability: experimental until the first release, then stable.
package config
