package gateway

import (
	"sync"

	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/internal/recent"
	"github.com/grapnelhq/grapnel/phases"
)

// mostSessions is how many sessions have an owner, and are known to the engine.
const mostSessions = 4096

// sessionTable says which token a session belongs to: the first that names it, until
// session/end. Another one must not read what the session's beginning brought, use up
// its reminders, or end it.
type sessionTable struct {
	mu    sync.Mutex
	owned recent.Map[phases.Session]
}

func newSessionTable() sessionTable {
	return sessionTable{owned: recent.New[phases.Session](mostSessions)}
}

func sessionKey(s *phases.Session) string { return s.WorkspaceID + "\x00" + s.SessionID }

// claimSession makes the context's session the caller's, or refuses it where it belongs
// to another token that is in force and still has the workspace.
func (g *Gateway) claimSession(c *rpc.Caller, name string, s *phases.Session) error {
	if s.SessionID == "" {
		return nil
	}
	g.sessions.mu.Lock()
	defer g.sessions.mu.Unlock()
	owned := &g.sessions.owned
	owner, taken := owned.Owner(sessionKey(s))
	switch {
	case taken && owner == c.Name:
		return nil
	case taken && g.rpc.TokenMay(owner, s.WorkspaceID):
		return rpc.Errorf(rpc.CodeUnauthorized, "%s.session_id: the session %q of this workspace belongs to another token, until that ends it (session/end): take another id", name, s.SessionID)
	case taken:
		owned.Drop(sessionKey(s))
		g.opts.Engine.ForgetSession(*s)
	}
	id := phases.Session{WorkspaceID: s.WorkspaceID, SessionID: s.SessionID}
	if old, full := owned.Put(c.Name, sessionKey(s), id); full {
		g.opts.Engine.ForgetSession(old)
	}
	return nil
}

// releaseSession makes a session that has ended nobody's.
func (g *Gateway) releaseSession(s *phases.Session) {
	g.sessions.mu.Lock()
	defer g.sessions.mu.Unlock()
	g.sessions.owned.Drop(sessionKey(s))
}
