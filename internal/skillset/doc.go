// Package skillset finds the skills that apply to a working directory: [Resolve] takes the
// directory and [Options], and returns a [Set] of skills by slug, with a [Diagnostic] for each that was omitted. It
// never fails, runs nothing that a skill brings, and knows nothing of hooks.
//
// A skill is a directory with a file SKILL.md in the open Agent Skills layout: YAML front matter between two lines
// "---", then Markdown, the body. The YAML is plain (no anchors, aliases, tags or merge keys), so that no text can
// grow by being read. Keys read here:
//
//   - name: 1 to 64 of a-z, 0-9 and single hyphens inside, equal to the directory's name; the slug. A skill with another
//     name, or none, is used under what can be made of it, with a diagnostic.
//   - description, required: at most 1,024 characters; of a longer one these are used.
//   - paths, an optional extension: globs of the files that the skill is about, as a list or one text with commas
//     (see [pathglob.Glob]). metadata.paths is accepted too, because validators of the open layout reject unknown keys.
//   - disable-model-invocation, optional: true hides the skill, since a model is what asks here.
//
// Relative directories of the options are looked for in the working directory and each directory above it up to the
// root of the source tree, nearest first. The first skill of a slug wins. Symbolic links are followed as long as they
// stay inside the source tree, an absolute directory of the options, or, for files, the skill's own directory.
//
// Texts are normalised: no byte order mark, LF newlines, U+FFFD for invalid UTF-8 and for characters that hide or
// reorder text. Joiners and emoji variation selectors stay.
package skillset
