package wiretest

import (
	"time"

	"google.golang.org/grpc/peer"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
)

// Section is a Result with one section, under any id and incarnation.
func Section(id, incarnation uint64, section, content string) []byte {
	return Sections(id, incarnation, 1, section, content)
}

// Sections is a Result with the same section n times; 0 is an answer without
// contributions.
func Sections(id, incarnation uint64, n int, section, content string) []byte {
	all := make([]*pluginpb.Contribution, n)
	for i := range all {
		all[i] = &pluginpb.Contribution{Kind: &pluginpb.Contribution_PromptSection{
			PromptSection: &pluginpb.PromptSection{SectionId: section, Title: section, Content: content},
		}}
	}
	return result(id, incarnation, all...)
}

// Audit is a Result with one audit event, whose details may be no JSON.
func Audit(id, incarnation uint64, details []byte) []byte {
	return result(id, incarnation, &pluginpb.Contribution{Kind: &pluginpb.Contribution_Audit{
		Audit: &pluginpb.Audit{EventKind: "bad", DetailsJson: details},
	}})
}

// Dribble lets one byte at a time out to the host from now on, with a pause
// behind each.
func (s *Session) Dribble(pause time.Duration) {
	if p, ok := peer.FromContext(s.stream.Context()); ok {
		if info, ok := p.AuthInfo.(cutInfo); ok {
			info.conn.pause.Store(int64(pause))
		}
	}
}

// dribble writes byte by byte until the connection is closed.
func (c *cutConn) dribble(p []byte, pause time.Duration) (int, error) {
	timer := time.NewTicker(pause)
	defer timer.Stop()
	for i := range p {
		if _, err := c.Conn.Write(p[i : i+1]); err != nil {
			return i, err
		}
		<-timer.C
	}
	return len(p), nil
}
