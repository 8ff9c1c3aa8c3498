// Package skillset finds the skills that apply to a working folder.
//
// It is the pure core of the skills plugin. [Resolve] is a function of a view of
// a file system, a working folder and [Options], and gives a [Set]: the skills by
// slug, and a [Diagnostic] for each that is left out. It never fails, and uses no
// clock, goroutine or logger.
//
// It is not a hook: it knows nothing of phases, sessions or sections, and runs
// nothing that a skill brings.
//
// Where to start: [Resolve] in resolve.go reads top-down; [FS] in view.go is what
// it may do to a file system; [OS] is the real one.
//
// # The layout
//
// A skill is a folder with a file SKILL.md, in the open Agent Skills layout: YAML
// front matter between two lines "---", then Markdown, the body. Of the front
// matter this package reads:
//
//   - name, required: 1 to 64 of a-z, 0-9 and single hyphens inside, and equal to
//     the folder's name. It is the slug.
//   - description, required: at most 1,024 characters.
//   - paths, optional and an extension: globs of files that the skill is about, as
//     a list or one text with commas. See [Glob]. Validators of the open layout
//     take no keys beside theirs, so metadata.paths is accepted as well.
//   - disable-model-invocation, optional: true hides the skill, because its author
//     wants people to start it, and a model is what asks here.
//
// Other keys are left alone. The YAML is plain: no anchors, aliases, tags or merge
// keys, so that no text can grow by being read.
//
// # Where skills are looked for
//
// Only in the folders of the options, in their order. A relative one is looked
// for in the working folder and each folder above it up to the root of the source
// tree, nearest first; an absolute one is itself. The first skill of a slug wins.
//
// Symbolic links are followed as long as they stay inside: in the source tree for
// relative folders, in the folder itself for absolute ones, and in the skill's own
// folder for its files. Only regular files are opened.
//
// # Text
//
// Texts are normalised: no byte order mark, LF newlines, U+FFFD for bytes that
// are not UTF-8 and for characters that hide or reorder text (controls,
// bidirectional and zero-width format characters, tags). Joiners and emoji
// variation selectors stay, because scripts and emoji need them.
//
// Stability: experimental.
package skillset
