//go:build unix

package runtime_test

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
)

// sectionFrame is a Result with one section.
func sectionFrame(id, incarnation uint64, content string) []byte {
	return resultFrame(id, incarnation, &pluginpb.Contribution{Kind: &pluginpb.Contribution_PromptSection{
		PromptSection: &pluginpb.PromptSection{SectionId: badSection, Title: badSection, Content: content},
	}})
}

// auditFrame is a Result with one audit event, whose details may be invalid JSON.
func auditFrame(id, incarnation uint64, details []byte) []byte {
	return resultFrame(id, incarnation, &pluginpb.Contribution{Kind: &pluginpb.Contribution_Audit{
		Audit: &pluginpb.Audit{EventKind: "bad", DetailsJson: details},
	}})
}

// Dribble lets one byte at a time out to the host from now on, with a pause after each.
func (s *rawSession) Dribble(pause time.Duration) { s.lane.pause = pause }

// dribble writes byte by byte until the connection is closed.
func (c *cutConn) dribble(p []byte) (int, error) {
	timer := time.NewTicker(c.pause)
	defer timer.Stop()
	for i := range p {
		if _, err := c.Conn.Write(p[i : i+1]); err != nil {
			return i, err
		}
		<-timer.C
	}
	return len(p), nil
}

// resultFrame is a frame that answers a Dispatch.
func resultFrame(id, incarnation uint64, all ...*pluginpb.Contribution) []byte {
	return encodeRaw(&pluginpb.PluginFrame{Id: id, Incarnation: incarnation, Body: &pluginpb.PluginFrame_Result{
		Result: &pluginpb.Result{Contributions: all},
	}})
}

// encodeRaw returns nil for text that is not UTF-8, which protobuf refuses.
func encodeRaw(f *pluginpb.PluginFrame) []byte {
	data, _ := proto.Marshal(f)
	return data
}
