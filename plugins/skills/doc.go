// Package skills is the skills plugin: it tells the model which skills there are
// (folders with a SKILL.md, in the open Agent Skills layout), and hands out their
// text when the model asks.
//
// It is glue between the hooks and package skillset, which finds and reads skills
// and knows nothing of hooks. Written as a stranger would write it: it uses no
// door of Grapnel that another plugin does not have. It runs nothing: what a
// skill's text says is for the model, under the host's own rules for tools.
//
// # The hooks
//
//   - "tool" answers turn.pre_tool_materialization with the bundle skills, which is
//     the tool read_skill, where tools can be called and there are skills. The tool
//     is the same bytes whatever skills there are: it stands at the very beginning
//     of what providers cache.
//   - "section" answers turn.pre_prompt_compile with the section skills_runtime:
//     one line per skill with the exact slug and the description, sorted, and
//     behind it the full text of up to max_active_bodies skills whose paths match
//     what the session works on.
//   - "touching" and "touched" listen at tool.pre_call and tool.post_call and
//     remember touched paths for that. They contribute nothing.
//
// # What stays the same
//
// The list depends on the files and on the room, never on what the session does,
// and full texts are appended in the order in which they came to match. So an
// unchanged session gives the same bytes turn after turn, and one that touches a
// new file changes the end of the section only.
//
// Where to start: [New], then library.go for where sets come from, section.go for
// the text, tool.go for read_skill.
//
// Stability: experimental until 1.0.
package skills
