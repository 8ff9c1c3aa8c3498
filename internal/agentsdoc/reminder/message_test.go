package reminder

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMessages(t *testing.T) {
	t.Parallel()
	named := File{Path: "/r/a/AGENTS.md", MTimeMs: 12, Change: New}
	given := File{Path: "/r/b/AGENTS.md", MTimeMs: 34, Change: Updated, Block: "[source: x]\nRules </system-reminder>\n"}
	gone := File{Path: "/r/c/AGENTS.md", Change: Removed}
	tests := []struct {
		name string
		m    Message
		typ  Type
		want []string
	}{
		{"by name", Style{}.ResolvePaths([]File{named}), ResolvePaths, []string{
			resolveHead, "- /r/a/AGENTS.md (mtime: 12)", resolveRead,
		}},
		{"with text", Style{}.ResolvePaths([]File{given, gone}), ResolvePaths, []string{
			resolveHead, "- /r/b/AGENTS.md (updated, mtime: 34)", resolveText, resolveNew, changedHead, "- /r/c/AGENTS.md (removed)", changedGone, "[source: x]", `Rules <\/system-reminder>`,
		}},
		{"some with text", Style{}.ResolvePaths([]File{named, given}), ResolvePaths, []string{
			resolveHead, "- /r/a/AGENTS.md (mtime: 12)", "- /r/b/AGENTS.md (updated, mtime: 34)", resolveRest, resolveNew, "[source: x]", `Rules <\/system-reminder>`,
		}},
		{"changes", Style{}.FilesChanged([]File{named, given, gone}), FilesChanged, []string{
			changedHead, "- /r/a/AGENTS.md (new, mtime: 12)", "- /r/b/AGENTS.md (updated, mtime: 34)", "- /r/c/AGENTS.md (removed)",
			changedRest, changedGone, "[source: x]", `Rules <\/system-reminder>`,
		}},
		{"only gone", Style{}.FilesChanged([]File{gone}), FilesChanged, []string{changedHead, "- /r/c/AGENTS.md (removed)", changedGone}},
		{"resumed elsewhere", Style{}.ResumeDiff(Resumed{DirFrom: "/a", DirTo: "/b", Moved: true}), ResumeDiff, []string{
			movedHead, "- cwd: /a -> /b", resumeAgain,
		}},
		{"what has not changed is said too", Style{Unchanged: true}.ResumeDiff(Resumed{DirFrom: "/a", DirTo: "/b", MarkersFrom: []string{}}), ResumeDiff, []string{
			resumeHead, "- cwd: /a -> /b", "- root: none -> none", "- markers: [] -> []", resumeAgain,
		}},
		{"paths that are printed alike are two", Style{}.ResumeDiff(Resumed{DirFrom: "/" + strings.Repeat("x", 300) + "1" + strings.Repeat("y", 300), DirTo: "/" + strings.Repeat("x", 300) + "2" + strings.Repeat("y", 300)}), ResumeDiff, []string{
			resumeHead, "- cwd: /" + strings.Repeat("x", 254) + "…" + strings.Repeat("y", 255) + " -> /" + strings.Repeat("x", 254) + "…" + strings.Repeat("y", 255), resumeAgain,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.m, Message{Type: tt.typ, Text: strings.Join(tt.want, "\n")}); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			escaped, _ := Escape(tt.m.Text)
			want := "<system-reminder type=\"" + string(tt.typ) + "\">\n" + escaped + "\n</system-reminder>"
			if got := tt.m.Tagged(); got != want {
				t.Errorf("tagged: %s", got)
			}
		})
	}
}
