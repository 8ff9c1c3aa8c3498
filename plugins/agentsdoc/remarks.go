package agentsdoc

import "github.com/grapnelhq/grapnel/phases"

// Codes of remarks about the plugin's own work.
const (
	// codeWatchDegraded: folders are looked at again in each turn.
	codeWatchDegraded = "watch_degraded"
	// codeStateNotKept: another process would not know what was said.
	codeStateNotKept = "state_not_kept"
	// codeStateDamaged: what the host has kept cannot be used.
	codeStateDamaged = "state_damaged"
	// codeStateTooLong: the text is not part of what the host keeps.
	codeStateTooLong = "state_too_long"
)

// remark notes something to be told with the session's next answer that is not
// the block itself; each code once.
func (s *session) remark(code string, severity phases.Severity, message string) {
	if s.told[code] {
		return
	}
	if s.told == nil {
		s.told = map[string]bool{}
	}
	s.told[code] = true
	d := phases.Diagnostic{Code: code, Severity: severity, Message: printable(message)}
	s.waiting = append(s.waiting, &phases.Noop{Common: phases.Common{Diagnostics: []phases.Diagnostic{d}}})
}

// takeWaiting returns what waits to be told.
func (s *session) takeWaiting() []phases.Contribution {
	waiting := s.waiting
	s.waiting = nil
	return waiting
}
