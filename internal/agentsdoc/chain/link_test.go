package chain

import (
	"fmt"
	"strings"
	"testing"
)

func TestResolveLinks(t *testing.T) {
	t.Parallel()
	root := `root "r" found=true`
	runCases(t, []resolveCase{
		{
			name: "inside the root",
			tree: files{"r/.git/": "", "r/AGENTS.md": "-> docs/agents/main.md", "r/docs/agents/main.md": "one"},
			dir:  "r",
			want: lines(root, "kept project AGENTS.md: one"),
		},
		{
			name: "absolute, through another link, inside the root",
			tree: files{"r/.git/": "", "r/AGENTS.md": "-> BASE/r/x/main.md", "r/x": "-> docs", "r/docs/main.md": "one"},
			dir:  "r",
			want: lines(root, "kept project AGENTS.md: one"),
		},
		{
			name: "out of the root: the next name is tried",
			tree: files{"r/.git/": "", "r/AGENTS.override.md": "-> ../secret", "r/AGENTS.md": "one", "secret": "key"},
			dir:  "r",
			want: lines(root, "skipped project AGENTS.override.md (symlink_escape)", "kept project AGENTS.md: one", "! error symlink_escape r/AGENTS.override.md"),
		},
		{
			name: "out by a directory that is a link",
			tree: files{"r/.git/": "", "r/AGENTS.md": "-> d/secret", "r/d": "-> ../out", "out/secret": "key"},
			dir:  "r",
			want: lines(root, "skipped project AGENTS.md (symlink_escape)", "! error symlink_escape r/AGENTS.md"),
		},
		{
			name: "a name that begins like the root's is outside",
			tree: files{"r/.git/": "", "r/AGENTS.md": "-> ../root/secret", "root/secret": "key"},
			dir:  "r",
			want: lines(root, "skipped project AGENTS.md (symlink_escape)", "! error symlink_escape r/AGENTS.md"),
		},
		{
			name: "into an allowed directory, given by a link",
			tree: files{"r/.git/": "", "r/AGENTS.md": "-> ../out/d/x", "out/d/x": "one", "o": "-> out"},
			dir:  "r", opts: Options{Allow: []string{"relative", "BASE/nowhere", "BASE/o"}},
			want: lines(root, "kept project AGENTS.md: one"),
		},
		{
			name: "within the real place of a linked chain directory",
			tree: files{"r/.git/": "", "r/in": "-> BASE/out", "out/AGENTS.md": "-> x/main", "out/x/main": "one"},
			dir:  "r/in",
			want: lines(root, "kept project in/AGENTS.md: one"),
		},
		{
			name: "another chain directory's place is not one's own",
			tree: files{"r/.git/": "", "r/in": "-> BASE/out", "out/a/AGENTS.md": "-> ../main", "out/main": "key"},
			dir:  "r/in/a",
			want: lines(root, "skipped project in/a/AGENTS.md (symlink_escape)", "! error symlink_escape r/in/a/AGENTS.md"),
		},
		{
			name: "to nothing",
			tree: files{"r/.git/": "", "r/AGENTS.md": "-> nothing"},
			dir:  "r",
			want: lines(root, "skipped project AGENTS.md (read_error)", "! warning read_error r/AGENTS.md"),
		},
		{
			name: "to itself",
			tree: files{"r/.git/": "", "r/AGENTS.md": "-> AGENTS.md"},
			dir:  "r",
			want: lines(root, "skipped project AGENTS.md (read_error)", "! warning read_error r/AGENTS.md"),
		},
		{
			name: "to a directory",
			tree: files{"r/.git/": "", "r/AGENTS.md": "-> docs", "r/docs/x": ""},
			dir:  "r",
			want: lines(root, "skipped project AGENTS.md (not_regular)", "! warning not_regular r/AGENTS.md"),
		},
		{
			name: "to the root itself",
			tree: files{"r/.git/": "", "r/AGENTS.md": "-> ."},
			dir:  "r",
			want: lines(root, "skipped project AGENTS.md (symlink_escape)", "! error symlink_escape r/AGENTS.md"),
		},
		{
			name: "global file out of its directory",
			tree: files{"r/.git/": "", "g/AGENTS.md": "-> ../secret", "secret": "key"},
			dir:  "r", opts: Options{GlobalDir: "BASE/g"},
			want: lines(root, "skipped global ~ (symlink_escape)", "! error symlink_escape g/AGENTS.md"),
		},
	})
}

func TestResolveGitMetadata(t *testing.T) {
	t.Parallel()
	root := `root "r" found=true`
	refused := lines(root, "skipped project AGENTS.md (git_metadata)", "! error git_metadata r/AGENTS.md")
	runCases(t, []resolveCase{
		{
			name: "by name",
			tree: files{"r/.git/description": "key", "r/AGENTS.md": "-> .git/description"},
			dir:  "r", want: refused,
		},
		{
			name: "by a name that some systems take for it",
			tree: files{"r/.git/": "", "r/.GIT\u200b/x": "key", "r/AGENTS.md": "-> .GIT\u200b/x"},
			dir:  "r", want: refused,
		},
		{
			name: "of a module below",
			tree: files{"r/.git/": "", "r/sub/.git/x": "key", "r/AGENTS.md": "-> sub/.git/x"},
			dir:  "r", want: refused,
		},
		{
			name: "a git directory that .git links to",
			tree: files{"r/.git": "-> store", "r/store/x": "key", "r/AGENTS.md": "-> store/x"},
			dir:  "r", want: refused,
		},
		{
			name: "a git directory that a .git file names",
			tree: files{"r/.git": "gitdir: store/of/git\n", "r/store/of/git/x": "key", "r/AGENTS.md": "-> store/of/git/x"},
			dir:  "r", want: refused,
		},
		{
			name: "the common directory of a worktree",
			tree: files{"r/.git": "gitdir: BASE-less", "r/wt/.git": "gitdir: ../store/worktrees/wt", "r/store/worktrees/wt/": "", "r/store/x": "key", "r/wt/AGENTS.md": "-> ../store/x"},
			dir:  "r/wt", opts: Options{Root: "BASE/r"},
			want: lines(root, "skipped project wt/AGENTS.md (git_metadata)", "! error git_metadata r/wt/AGENTS.md"),
		},
		{
			name: "by structure",
			tree: files{"r/.git/": "", "r/bare/HEAD": "", "r/bare/objects/": "", "r/bare/refs/": "", "r/bare/hooks/x": "key", "r/AGENTS.md": "-> bare/hooks/x"},
			dir:  "r", want: refused,
		},
		{
			name: "a worktree's directory by structure",
			tree: files{"r/.git/": "", "r/w/HEAD": "", "r/w/commondir": "", "r/w/x": "key", "r/AGENTS.md": "-> w/x"},
			dir:  "r", want: refused,
		},
		{
			name: "a .git file that names nothing of use",
			tree: files{"r/.git": "not a git file", "r/x": "one", "r/AGENTS.md": "-> x"},
			dir:  "r", want: lines(root, "kept project AGENTS.md: one"),
		},
		{
			name: "a file beside it that is not a link",
			tree: files{"r/.git/": "", "r/.git/hooks/AGENTS.md": "odd, but the person is there"},
			dir:  "r/.git/hooks", want: lines(root, "kept project .git/hooks/AGENTS.md: odd, but the person is there"),
		},
	})
}

func TestResolveStubs(t *testing.T) {
	t.Parallel()
	root := `root "r" found=true`
	stubs := func(n int) files {
		tree := files{"r/.git/": "", fmt.Sprintf("r/d%d/AGENTS.md", n): "end"}
		for i := range n {
			tree[fmt.Sprintf("r/d%d/AGENTS.md", i)] = fmt.Sprintf("../d%d/AGENTS.md", i+1)
		}
		return tree
	}
	runCases(t, []resolveCase{
		{
			name: "one",
			tree: files{"r/.git/": "", "r/AGENTS.md": " ./docs/AGENTS.md \r\n", "r/docs/AGENTS.md": "one"},
			dir:  "r",
			want: lines(root, "kept project AGENTS.md: one", "! warning symlink_stub r/AGENTS.md"),
		},
		{
			name: "to a fallback's name",
			tree: files{"r/.git/": "", "r/AGENTS.md": "CLAUDE.md", "r/CLAUDE.md": "one"},
			dir:  "r", opts: Options{FallbackNames: []string{"CLAUDE.md"}},
			want: lines(root, "kept project AGENTS.md: one", "! warning symlink_stub r/AGENTS.md"),
		},
		{
			name: "not to a name that does not count",
			tree: files{"r/.git/": "", "r/AGENTS.md": "CLAUDE.md", "r/CLAUDE.md": "one"},
			dir:  "r",
			want: lines(root, "kept project AGENTS.md: CLAUDE.md"),
		},
		{
			name: "nothing there: it is text",
			tree: files{"r/.git/": "", "r/AGENTS.md": "Read docs/AGENTS.md"},
			dir:  "r",
			want: lines(root, "kept project AGENTS.md: Read docs/AGENTS.md"),
		},
		{
			name: "two lines are text",
			tree: files{"r/.git/": "", "r/AGENTS.md": "docs/AGENTS.md\nplease", "r/docs/AGENTS.md": "one"},
			dir:  "r",
			want: lines(root, "kept project AGENTS.md: docs/AGENTS.md\nplease"),
		},
		{
			name: "too long to be one",
			tree: files{"r/.git/": "", "r/AGENTS.md": strings.Repeat("./", 128) + "docs/AGENTS.md", "r/docs/AGENTS.md": "one"},
			dir:  "r",
			want: lines(root, "kept project AGENTS.md: "+strings.Repeat("./", 128)+"docs/AGENTS.md"),
		},
		{
			name: "out of the root it is text",
			tree: files{"r/.git/": "", "r/AGENTS.md": "../AGENTS.md", "AGENTS.md": "key"},
			dir:  "r",
			want: lines(root, "kept project AGENTS.md: ../AGENTS.md"),
		},
		{
			name: "out of the root behind a link",
			tree: files{"r/.git/": "", "r/AGENTS.md": "d/AGENTS.md", "r/d": "-> ../out", "out/AGENTS.md": "key"},
			dir:  "r",
			want: lines(root, "skipped project AGENTS.md (symlink_escape)", "! error symlink_escape r/AGENTS.md"),
		},
		{
			name: "into git's files",
			tree: files{"r/.git/AGENTS.md": "key", "r/AGENTS.md": ".git/AGENTS.md"},
			dir:  "r",
			want: lines(root, "skipped project AGENTS.md (git_metadata)", "! error git_metadata r/AGENTS.md"),
		},
		{
			name: "through a link to a stub",
			tree: files{"r/.git/": "", "r/AGENTS.md": "-> x/stub", "r/x/stub": "AGENTS.md", "r/x/AGENTS.md": "one"},
			dir:  "r",
			want: lines(root, "kept project AGENTS.md: one", "! warning symlink_stub r/AGENTS.md"),
		},
		{
			name: "override to the file beside it",
			tree: files{"r/.git/": "", "r/AGENTS.override.md": "AGENTS.md", "r/AGENTS.md": "one"},
			dir:  "r",
			want: lines(root, "kept project AGENTS.override.md: one", "! warning symlink_stub r/AGENTS.override.md"),
		},
		{
			name: "to itself",
			tree: files{"r/.git/": "", "r/AGENTS.md": "AGENTS.md"},
			dir:  "r",
			want: lines(root, "skipped project AGENTS.md (stub_loop)", "! warning stub_loop r/AGENTS.md"),
		},
		{
			name: "to each other",
			tree: files{"r/.git/": "", "r/AGENTS.md": "a/AGENTS.md", "r/a/AGENTS.md": "../AGENTS.md"},
			dir:  "r",
			want: lines(root, "skipped project AGENTS.md (stub_loop)", "! warning stub_loop r/AGENTS.md"),
		},
		{
			name: "eight",
			tree: stubs(8),
			dir:  "r/d0",
			want: lines(root, "kept project d0/AGENTS.md: end", "! warning symlink_stub r/d0/AGENTS.md"),
		},
		{
			name: "nine",
			tree: stubs(9),
			dir:  "r/d0",
			want: lines(root, "skipped project d0/AGENTS.md (stub_loop)", "! warning stub_loop r/d0/AGENTS.md"),
		},
	})
}

func TestLongLinkLoop(t *testing.T) {
	t.Parallel()
	tree := files{"r/.git/": "", "r/AGENTS.md": "-> l0"}
	for i := range 64 {
		tree[fmt.Sprintf("r/l%d", i)] = fmt.Sprintf("-> l%d", (i+1)%64)
	}
	runCases(t, []resolveCase{{
		name: "64 links", tree: tree, dir: "r",
		want: lines(`root "r" found=true`, "skipped project AGENTS.md (read_error)", "! warning read_error r/AGENTS.md"),
	}})
}
