package gateway

import (
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/gateway/rpc"
)

// NotifyTurn is the notification of a turn whose client did not end it.
const NotifyTurn = "turn/ended"

// endReason says why a turn has ended.
type endReason string

// The reasons.
const (
	endAsked    endReason = "ended"    // its client ended it
	endIdle     endReason = "idle"     // nothing was heard of it
	endStopping endReason = "stopping" // the gateway stops
)

// TurnEnded are the params of turn/ended.
type TurnEnded struct {
	Handle      string    `json:"handle"`
	WorkspaceID string    `json:"workspace_id"`
	ThreadID    string    `json:"thread_id"`
	TurnID      string    `json:"turn_id"`
	Reason      endReason `json:"reason"       jsonschema:"idle: no call for as long as serve.turn_idle allows; stopping: the gateway stops"`
	EndedAt     time.Time `json:"ended_at"`

	idle time.Duration
}

// words says why, for people.
func (e *TurnEnded) words() string {
	switch e.Reason {
	case endIdle:
		return fmt.Sprintf("idle for %v", e.idle)
	case endStopping:
		return "the gateway is stopping"
	default:
		return "by turn/end"
	}
}

// endedTurn is a turn that has ended.
type endedTurn struct {
	TurnEnded

	token string
}

// mostEnded is how many turns that have ended are remembered.
const mostEnded = 4096

// turnUnknown answers a handle that nothing is known of. It may be another token's.
func turnUnknown(handle string) error {
	return &rpc.Error{Code: rpc.CodeTurnUnknown, Data: map[string]any{"reason": "unknown"}, Message: fmt.Sprintf(
		"there is no turn %.64q here: it was begun at another gateway, or before a restart, or never. Begin the turn again (turn/begin); each gateway keeps its own turns, so send all calls of a turn to the one that began it", handle)}
}

// turnEndedError answers the handle of a turn that has ended.
func turnEndedError(e endedTurn) error {
	return &rpc.Error{
		Code: rpc.CodeTurnUnknown, Data: map[string]any{"reason": e.Reason, "ended_at": e.EndedAt},
		Message: fmt.Sprintf("the turn ended at %s: %s; begin another one (turn/begin)", e.EndedAt.Format(time.RFC3339), e.words()),
	}
}

// tooManyTurns refuses the begin of a turn.
func tooManyTurns(format string, args ...any) error {
	err := rpc.Errorf(rpc.CodeUnavailable, format, args...)
	err.Data = map[string]any{"reason": "turns"}
	return err
}
