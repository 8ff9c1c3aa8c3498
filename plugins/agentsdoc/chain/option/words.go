package option

// The words that options take. The zero value of each is no word: it means that
// nothing was said.
type (
	// Preset names a set of options.
	Preset string
	// OverrideRule says what an override without text does.
	OverrideRule string
	// Trust says which roots' files are instructions. The files of the user and
	// of the operator always are.
	Trust string
	// Untrusted says what becomes of files of a root that is not trusted.
	Untrusted string
	// Layout says how sources become a text, and how they share the budget.
	Layout string
	// Placement says where in the conversation a text belongs.
	Placement string
	// Delivery says how a file of a folder that was touched reaches the model.
	Delivery string
	// ChangedWhen says when a file that was delivered counts as another.
	ChangedWhen string
)

// The presets.
const (
	PresetDefault Preset = "default"
	PresetCodex   Preset = "codex"
	PresetCodelia Preset = "codelia"
)

// The rules for an override without text.
const (
	// OverrideFallsThrough tries the names after it.
	OverrideFallsThrough OverrideRule = "falls_through"
	// OverrideShadows leaves its folder without a file.
	OverrideShadows OverrideRule = "shadows"
)

// The kinds of trust.
const (
	TrustAll Trust = "all"
	// TrustListed trusts roots in and below the folders of Set.Allow.
	TrustListed Trust = "listed"
	TrustNone   Trust = "none"
)

// The treatments of files that are not trusted.
const (
	// UntrustedNames puts one line with the path into the text, and no more.
	UntrustedNames Untrusted = "names"
	// UntrustedText uses the text, without characters that reorder or hide it.
	UntrustedText Untrusted = "text"
)

// The layouts.
const (
	// LayoutDelimited is a header, and each source behind a delimiter line, its
	// body escaped. All share the budget, and the nearest loses last.
	LayoutDelimited Layout = "delimited"
	// LayoutJoined is the bare text of the files, blank lines between them. From
	// the root down each takes what is left of the budget and is cut at the
	// byte; user-wide files stand before, trimmed, and take nothing of it.
	LayoutJoined Layout = "joined"
	// LayoutTitled is each file, without white space at its end, below a line
	// with its path. Files are whole, and the first that does not fit ends the
	// list.
	LayoutTitled Layout = "titled"
)

// The placements.
const (
	// PlaceSystem is a section of the system prompt.
	PlaceSystem Placement = "system"
	// PlaceUserMessage is a message of the user, before the first one.
	PlaceUserMessage Placement = "user_message"
	// PlaceSystemMessage is a system message behind the others.
	PlaceSystemMessage Placement = "system_message"
)

// The deliveries.
const (
	DeliverBody     Delivery = "body"
	DeliverReminder Delivery = "reminder"
	DeliverOff      Delivery = "off"
)

// The signs of change.
const (
	ChangedByHash        ChangedWhen = "hash"
	ChangedByTimeOrHash  ChangedWhen = "mtime_or_hash"
	ChangedNeverResolved ChangedWhen = "never"
)
