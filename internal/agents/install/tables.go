package install

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// tables is Codex's config.toml: lines, of which those of one table may be ours.
type tables struct {
	text string
	end  string // of a line
	all  map[string]any
	// ours is our server, if it is there.
	ours *agent.Server
}

var (
	// header matches the header of the table of our server, and of tables below it.
	header = lazyregexp.New(`^\s*\[\[?\s*["']?mcp_servers["']?\s*\.\s*(?:` + serverName + `|"` + serverName + `"|'` + serverName + `')\s*[].]`)
	// inline matches servers that stand in one value, which a table must not extend, though the decoder here takes it.
	inline = lazyregexp.New(`(?m)^[ \t"']*mcp_servers[ \t"']*=`)
	blank  = lazyregexp.New(`^\s*(#.*)?\s*$`)
)

func parseTables(data []byte) (*tables, error) {
	t := &tables{text: string(data), end: "\n"}
	if strings.Contains(t.text, "\r\n") {
		t.end = "\r\n"
	}
	if _, err := toml.Decode(t.text, &t.all); err != nil {
		return nil, fmt.Errorf("it is not TOML: %w", err)
	}
	var file struct {
		Servers map[string]*agent.Server `toml:"mcp_servers"`
	}
	if _, err := toml.Decode(t.text, &file); err == nil { // another shape is not ours
		if s := file.Servers[serverName]; s != nil && isOurServer(s) {
			t.ours = s
		}
	}
	return t, nil
}

func (t *tables) Has(w *Wanted) bool { return reflect.DeepEqual(t.ours, w.Server) }

func (t *tables) Add(w *Wanted) error {
	servers, _ := t.all["mcp_servers"].(map[string]any)
	switch _, there := servers[serverName]; {
	case t.ours != nil:
		return fmt.Errorf("the MCP server %s is written in a way that it cannot be taken out; remove it yourself", serverName)
	case w.Server == nil:
		return nil
	case there:
		return fmt.Errorf("the MCP server %s is another program's; rename it there", serverName)
	}
	var lines []string
	for _, field := range []struct {
		name  string
		value any
	}{{"command", w.Server.Command}, {"args", w.Server.Args}, {"env_vars", w.Server.Pass}} {
		lines = append(lines, field.name+" = "+string(agent.Marshal(field.value))) // texts and lists of them are as in JSON
	}
	before := t.text
	if before != "" && !strings.HasSuffix(before, "\n") {
		before += t.end
	}
	if before != "" {
		before += t.end
	}
	added, err := parseTables([]byte(before + "[mcp_servers." + serverName + "]" + t.end + strings.Join(lines, t.end) + t.end))
	if err != nil || inline().MatchString(t.text) || !added.Has(w) || !sameWithoutOurs(t.all, added.all) {
		return fmt.Errorf("its mcp_servers are written in a way that nothing can be added to; add a server %s yourself, with %s", serverName, strings.Join(lines, ", "))
	}
	*t = *added
	return nil
}

func (t *tables) Remove() bool {
	if t.ours == nil {
		return false
	}
	lines := strings.SplitAfter(t.text, "\n")
	for from := slices.IndexFunc(lines, header().MatchString); from >= 0; from = slices.IndexFunc(lines, header().MatchString) {
		to := from + 1
		for to < len(lines) && (!strings.HasPrefix(strings.TrimSpace(lines[to]), "[") || header().MatchString(lines[to])) {
			to++
		}
		for to > from+1 && blank().MatchString(lines[to-1]) { // what stands before the next table is that one's
			to--
		}
		if from > 0 && strings.TrimSpace(lines[from-1]) == "" {
			from--
		}
		lines = slices.Delete(lines, from, to)
	}
	left, err := parseTables([]byte(strings.Join(lines, "")))
	if err != nil || left.ours != nil || !sameWithoutOurs(t.all, left.all) {
		return false
	}
	*t = *left
	return true
}

// sameWithoutOurs reports whether two files say the same but for our server.
func sameWithoutOurs(a, b map[string]any) bool {
	without := func(all map[string]any) map[string]any {
		all = maps.Clone(all)
		if servers, ok := all["mcp_servers"].(map[string]any); ok {
			servers = maps.Clone(servers)
			delete(servers, serverName)
			all["mcp_servers"] = servers
			if len(servers) == 0 {
				delete(all, "mcp_servers")
			}
		}
		return all
	}
	left, right := without(a), without(b)
	return len(left) == 0 && len(right) == 0 || reflect.DeepEqual(left, right)
}

func (t *tables) Serves() []string {
	if t.ours == nil {
		return nil
	}
	return append([]string{t.ours.Command}, t.ours.Args...)
}

func (t *tables) Bytes() []byte { return []byte(t.text) }
