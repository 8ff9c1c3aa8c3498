package manifest

import (
	"cmp"
	"strings"
)

// Words says in a few words what changed: the section or tool, its owner, and what explains it.
func (b Break) Words() string {
	what := map[Cause]string{
		CauseProvider: "another provider", CauseModel: "another model", CauseExpired: "the last prompt expired",
		CauseKey: "another fingerprint key", CausePoint: "no breakpoint where the last prompt had one",
		CauseEpoch:  "the conversation was replaced",
		CauseEdited: "earlier messages were edited", CauseCut: "earlier messages were cut",
		CauseVersion: "another version of a plugin", CauseConfig: "another configuration", CauseBuild: "another build",
		CauseUnknown: "the provider dropped it",
	}[b.Cause]
	switch b.Cause {
	case "":
		return ""
	case CauseTools, CauseHost:
		what = "the tool " + b.Tool + ": " + strings.ReplaceAll(b.Field, "_", " ")
	case CauseText:
		if what = "another text"; b.Field != "text" {
			what = "a contribution: " + b.Field
		}
	case CauseOrder:
		what = "stands elsewhere"
	case CauseInserted:
		what = "was inserted"
	case CauseRemoved:
		what = "was removed"
	case CauseMoved:
		what = "another " + b.Field
	default:
		what = cmp.Or(what, string(b.Cause)) // of a later version
	}
	switch b.Because { //nolint:exhaustive // there are no others
	case CauseVersion:
		what += ", with another version of " + b.Owner
	case CauseConfig:
		what += ", with another configuration"
	case CauseBuild:
		what += ", with another build"
	case CauseProfile:
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
