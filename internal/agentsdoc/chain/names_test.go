package chain

import "testing"

func TestResolveNames(t *testing.T) {
	t.Parallel()
	root := `root "" found=true`
	runCases(t, []resolveCase{
		{
			name: "override wins",
			tree: files{".git/": "", "AGENTS.override.md": "mine", "AGENTS.md": "theirs"},
			want: lines(root, "kept project AGENTS.override.md: mine", "! info shadowed_by_override AGENTS.md"),
		},
		{
			name: "empty override falls through",
			tree: files{".git/": "", "AGENTS.override.md": " \r\n\t\n", "AGENTS.md": "theirs"},
			want: lines(root, "skipped project AGENTS.override.md (empty_override)", "kept project AGENTS.md: theirs", "! info empty_override AGENTS.override.md"),
		},
		{
			name: "empty override alone",
			tree: files{".git/": "", "AGENTS.override.md": ""},
			want: lines(root, "skipped project AGENTS.override.md (empty_override)", "! info empty_override AGENTS.override.md"),
		},
		{
			name: "a blank file takes its directory and no part",
			tree: files{".git/": "", "AGENTS.md": "\uFEFF \n\n", "CLAUDE.md": "other"},
			opts: Options{FallbackNames: []string{"CLAUDE.md"}},
			want: lines(root, "skipped project AGENTS.md (blank)"),
		},
		{
			name: "fallback",
			tree: files{".git/": "", "a/CLAUDE.md": "other", "AGENTS.md": "one", "CLAUDE.md": "unread"},
			dir:  "a",
			opts: Options{FallbackNames: []string{"CLAUDE.md"}},
			want: lines(root, "kept project AGENTS.md: one", "kept project a/CLAUDE.md: other"),
		},
		{
			name: "no fallback unless asked for",
			tree: files{".git/": "", "CLAUDE.md": "other"},
			want: lines(root),
		},
		{
			name: "names of one's own",
			tree: files{".git/": "", "RULES.md": "mine", "AGENTS.md": "theirs"},
			opts: Options{Names: []string{"RULES.md", "../AGENTS.md"}},
			want: lines(root, "kept project RULES.md: mine", "! warning marker_invalid ../AGENTS.md"),
		},
		{
			name: "near misses",
			tree: files{".git/": "", "agents.md": "a", "Agents.md": "b", "AGENTS.MD": "c", "AGENT.md": "d", "Agent.md": "e", "agent.md": "f", "AGENTS.txt": "g"},
			want: lines(root, "! warning near_miss_name agents.md", "! warning near_miss_name Agents.md", "! warning near_miss_name AGENTS.MD",
				"! warning near_miss_name AGENT.md", "! warning near_miss_name Agent.md", "! warning near_miss_name agent.md"),
		},
		{
			name: "a near miss that leads to the match",
			tree: files{".git/": "", "AGENTS.md": "one", "agents.md": "-> AGENTS.md", "AGENT.md": "-> ./AGENTS.md"},
			want: lines(root, "kept project AGENTS.md: one"),
		},
		{
			name: "the match leads to a near miss",
			tree: files{".git/": "", "AGENTS.md": "-> AGENT.md", "AGENT.md": "one"},
			want: lines(root, "kept project AGENTS.md: one"),
		},
		{
			name: "a near miss that is a candidate, or a directory",
			tree: files{".git/": "", "AGENT.md": "one", "agents.md/": ""},
			opts: Options{FallbackNames: []string{"AGENT.md"}},
			want: lines(root, "kept project AGENT.md: one"),
		},
		{
			name: "a directory is no match",
			tree: files{".git/": "", "AGENTS.override.md/x": "", "AGENTS.md": "one"},
			want: lines(root, "kept project AGENTS.md: one", "! warning not_regular AGENTS.override.md"),
		},
	})
}

func TestResolveGlobal(t *testing.T) {
	t.Parallel()
	root := `root "r" found=true`
	runCases(t, []resolveCase{
		{
			name: "before the tree",
			tree: files{"g/AGENTS.md": "all", "r/.git/": "", "r/AGENTS.md": "one"},
			dir:  "r", opts: Options{GlobalDir: "BASE/g"},
			want: lines(root, "kept global ~: all", "kept project AGENTS.md: one"),
		},
		{
			name: "override, without fallbacks",
			tree: files{"g/AGENTS.override.md": "mine", "g/AGENTS.md": "all", "g/CLAUDE.md": "x", "r/.git/": ""},
			dir:  "r", opts: Options{GlobalDir: "BASE/g", FallbackNames: []string{"CLAUDE.md"}},
			want: lines(root, "kept global ~: mine", "! info shadowed_by_override g/AGENTS.md"),
		},
		{
			name: "empty override falls through",
			tree: files{"g/AGENTS.override.md": "\n", "g/AGENTS.md": "all", "r/.git/": ""},
			dir:  "r", opts: Options{GlobalDir: "BASE/g"},
			want: lines(root, "skipped global ~ (empty_override)", "kept global ~: all", "! info empty_override g/AGENTS.override.md"),
		},
		{
			name: "directory that is not there",
			tree: files{"r/.git/": ""},
			dir:  "r", opts: Options{GlobalDir: "BASE/g"},
			want: lines(root),
		},
		{
			name: "directory that is a file",
			tree: files{"r/.git/": "", "g": ""},
			dir:  "r", opts: Options{GlobalDir: "BASE/g"},
			want: lines(root, "! warning read_error g"),
		},
		{
			name: "directory that is a link",
			tree: files{"r/.git/": "", "dot/AGENTS.md": "all", "g": "-> dot"},
			dir:  "r", opts: Options{GlobalDir: "BASE/g"},
			want: lines(root, "kept global ~: all"),
		},
		{
			name: "working in it",
			tree: files{"r/.git/": "", "r/g/AGENTS.md": "all"},
			dir:  "r/g", opts: Options{GlobalDir: "BASE/r/g"},
			want: lines(root, "duplicate global ~ (duplicate) = r/g/AGENTS.md", "kept project g/AGENTS.md: all", "! info duplicate r/g/AGENTS.md"),
		},
	})
}

func TestResolveTwins(t *testing.T) {
	t.Parallel()
	root := `root "" found=true`
	runCases(t, []resolveCase{
		{
			name: "same text, whatever its newlines",
			tree: files{".git/": "", "AGENTS.md": "x\ny\n", "a/AGENTS.md": "other", "a/b/AGENTS.md": "\uFEFFx\r\ny\r\n"},
			dir:  "a/b",
			want: lines(root, "duplicate project AGENTS.md (duplicate) = a/b/AGENTS.md", "kept project a/AGENTS.md: other", "kept project a/b/AGENTS.md: x\ny",
				"! info duplicate AGENTS.md"),
		},
		{
			name: "three of a kind",
			tree: files{".git/": "", "AGENTS.md": "x", "a/AGENTS.md": "-> ../AGENTS.md", "a/b/AGENTS.md": "x"},
			dir:  "a/b",
			want: lines(root, "duplicate project AGENTS.md (duplicate) = a/b/AGENTS.md", "duplicate project a/AGENTS.md (duplicate) = a/b/AGENTS.md",
				"kept project a/b/AGENTS.md: x", "! info duplicate AGENTS.md", "! info duplicate a/AGENTS.md"),
		},
		{
			name: "blank ones take no part",
			tree: files{".git/": "", "AGENTS.md": "", "a/AGENTS.md": ""},
			dir:  "a",
			want: lines(root, "skipped project AGENTS.md (blank)", "skipped project a/AGENTS.md (blank)"),
		},
		{
			name: "a stub whose target is on the chain",
			tree: files{".git/": "", "AGENTS.md": "x", "a/AGENTS.md": "../AGENTS.md\n"},
			dir:  "a",
			want: lines(root, "duplicate project AGENTS.md (duplicate) = a/AGENTS.md", "kept project a/AGENTS.md: x",
				"! warning symlink_stub a/AGENTS.md", "! info duplicate AGENTS.md"),
		},
	})
}
