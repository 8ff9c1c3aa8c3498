// Package config reads grapnel.yaml, the operator's file, into a [Config].
//
// It is strict: unknown keys, wrong words, numbers without a unit, duplicate names
// and values out of range are errors. All mistakes of a file are reported at once,
// each with file, line, column, a caret and, for names, the nearest known one.
//
// [Load] reads a file and [Parse] text; [Loader] does either with another environment. Mistakes that only show
// together with the plugins' descriptions are reported with [Config.ErrorAt] and [Config.PlanError]. [Schema] has the
// same rules for editors, [Template] is a file to begin with. The package knows no plugin by name, compiles no
// condition, and accepts a command that does not exist: that plugin's start fails, and the others work.
//
// # How it works
//
// yaml.go turns text into nodes with positions; nothing else knows the YAML library. decode.go fills Go structs from
// nodes by reflection. rules.go has what a single key accepts and its description, for the decoder and the schema.
// check.go and what stands beside it check several keys together.
//
// # What YAML is accepted
//
// One document of at most 1 MiB in UTF-8, without anchors, aliases, tags, merge keys and complex keys. Plain scalars
// follow the core schema of YAML 1.2 (yes, no and dates are texts); numbers with leading zeros are refused, because
// programs disagree about them. A list or mapping without value counts as absent, a scalar without value is an error.
//
// # Secrets
//
// A whole scalar ${NAME} in plugins[].config, plugins[].env.set, store and the keys of manifest is taken from the
// environment. Such values print as "***" in every encoding of a Config, and no error message contains them.
//
// Stability: experimental until the first release, then stable.
package config
