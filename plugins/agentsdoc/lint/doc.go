// Package lint looks at the instruction files of a whole source tree and reports
// what is wrong with them.
//
// [Run] walks the tree once and asks package chain, for each folder that holds an
// instruction file, what a session in that folder would get. All findings are
// chain's, each told once however many chains it is in, and some of lint's own:
// a personal file that git tracks, a CLAUDE.md that nothing reads, a folder that
// cannot be listed, and an index of git's that cannot be read.
//
// It is no hook and no part of a session: it runs on a person's or a pipeline's
// word, and keeps nothing.
//
// # What is walked
//
// Everything below the root that the working folder has, but for:
//
//   - folders of tools: .git, .jj, .hg, node_modules, vendor, third_party,
//     .venv, target;
//   - folders that git ignores, by the .gitignore files on the way and the
//     repository's own list. Ignored files are looked at: people ignore their
//     personal ones;
//   - folders behind symbolic links;
//   - trees of their own: a folder below the root with .git or a marker. A chain
//     in there begins there, so its files are no part of this tree. They are
//     counted in [Report].Nested; to look at one is another run.
//
// # Cost
//
// Lint is made for trees with a hundred thousand folders. The walk opens each
// folder once and stats nothing; a view that remembers the folders and files on
// the way down (package-internal memory) makes the chain of a folder cost no file
// system calls but those for its own files. What is remembered is let go when the
// walk leaves the folder.
//
// Where to start: [Run], then visit in walk.go and judge in judge.go.
//
// Stability: experimental.
package lint
