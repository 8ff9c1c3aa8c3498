package turnpolicy

// Slot names what a fact is the one answer to: of two facts with one slot the newer
// one holds. The empty one is that of most facts, which stand beside each other.
type Slot string

// The slots. All are about one person.
const (
	SlotName          Slot = "name"
	SlotPronouns      Slot = "pronouns"
	SlotHome          Slot = "home"
	SlotAddress       Slot = "address"
	SlotEmail         Slot = "email"
	SlotPhone         Slot = "phone"
	SlotBirthday      Slot = "birthday"
	SlotEmployer      Slot = "employer"
	SlotJob           Slot = "job"
	SlotTimeZone      Slot = "time_zone"
	SlotEditor        Slot = "editor"
	SlotShell         Slot = "shell"
	SlotSystem        Slot = "operating_system"
	SlotReplyLanguage Slot = "reply_language"
)

// Slots returns the slots.
func Slots() []Slot {
	return []Slot{
		SlotName, SlotPronouns, SlotHome, SlotAddress, SlotEmail, SlotPhone, SlotBirthday, SlotEmployer, SlotJob,
		SlotTimeZone, SlotEditor, SlotShell, SlotSystem, SlotReplyLanguage,
	}
}

// Slot returns the slot of a fact, by its text; empty if it has none. It errs to that
// side: a fact that is taken for a newer answer puts another one out of use, and one
// that is not stands beside it.
func (r *Rules) Slot(fact string) Slot {
	// A fact is short; of a longer text nothing has a slot.
	if len(fact) > MaxFactText {
		return ""
	}
	text := fold(tidy(fact)).text
	for _, lazy := range r.languages {
		if !hasWord(text, lazy.words) {
			continue
		}
		l, err := lazy.compile()
		if err != nil {
			continue // see in
		}
		heard := l.hear(text)
		for i := range l.slots {
			if _, ok := l.slots[i].find(heard); ok {
				return l.slots[i].Slot
			}
		}
	}
	return ""
}
