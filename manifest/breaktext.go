package manifest

import (
	"cmp"
	"strings"
)

// Words says in a few words what changed: the section or tool, its owner, and what explains it.
func (b Break) Words() string {
	what := map[Cause]string{
		causeProvider: "another provider", causeModel: "another model", causeExpired: "the last prompt expired",
		causeKey: "another fingerprint key", causePoint: "no breakpoint where the last prompt had one",
		CauseEpoch:  "the conversation was replaced",
		causeEdited: "earlier messages were edited", causeCut: "earlier messages were cut",
		causeVersion: "another version of a plugin", causeConfig: "another configuration", causeBuild: "another build",
		causeUnknown: "the provider dropped it",
	}[b.Cause]
	switch b.Cause {
	case "":
		return ""
	case causeTools, causeHost:
		what = "the tool " + b.Tool + ": " + strings.ReplaceAll(b.Field, "_", " ")
	case causeText:
		if what = "another text"; b.Field != "text" {
			what = "a contribution: " + b.Field
		}
	case causeOrder:
		what = "stands elsewhere"
	case causeInserted:
		what = "was inserted"
	case causeRemoved:
		what = "was removed"
	case causeMoved:
		what = "another " + b.Field
	default:
		what = cmp.Or(what, string(b.Cause)) // of a later version
	}
	switch b.Because { //nolint:exhaustive // there are no others
	case causeVersion:
		what += ", with another version of " + b.Owner
	case causeConfig:
		what += ", with another configuration"
	case causeBuild:
		what += ", with another build"
	case causeProfile:
		what += ", by the profile"
	}
	return what
}

// Place is the section or tool at which the prompt broke; the cause where it was neither.
func (b Break) Place() string {
	switch {
	case b.BrokeAt != "":
		return b.BrokeAt
	case b.Tool != "":
		return b.Tool
	}
	return string(b.Cause)
}
