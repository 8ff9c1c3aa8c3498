package facts

import (
	"slices"
	"strings"
	"unicode"

	"github.com/grapnelhq/grapnel/internal/facts/argument"
	"github.com/grapnelhq/grapnel/internal/facts/shell"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// call is the work on the arguments of one call.
type call struct {
	*finder
	tool  []string // the words in its name
	shell bool     // it runs commands
	asked bool     // its prompt has the addresses that it fetches
	list  *[]string
}

// Words in the names of tools that say what they do with files.
const (
	runTools   = "bash shell sh exec terminal command cmd run execute process zsh ssh"
	writeTools = "write edit patch create delete remove move rename save update insert replace append mkdir rm multiedit put modify touch"
	readTools  = "read view open get cat grep search glob list ls fetch load find stat tree info show head tail download query"
	otherShell = "powershell pwsh cmd"
)

func (f *finder) call(tool string, root argument.Node, paths []string) {
	c := call{finder: f, tool: toolWords(tool)}
	c.shell = c.named(runTools)
	c.list = c.use(root)
	_, given := root.Member("url", "urls")
	c.asked = !given && strings.Join(c.tool, "") == "webfetch"
	for _, name := range paths {
		f.file(c.list, "", name)
	}
	root.Walk(c.visit)
	if c.list == &f.Reads && len(f.Reads)+len(f.Names) == 0 && root.Kind == '{' && len(c.tool) > 0 && shell.OneOf("grep glob ls list searchfilecontent grepsearch listdirectory filesearch codebasesearch", strings.Join(c.tool, "")) {
		f.file(&f.Reads, "", ".")
	}
}

// toolWords are the words in a tool's name, in lower case: those of an MCP server's tool without the server.
func toolWords(tool string) []string {
	if strings.HasPrefix(tool, "mcp__") {
		tool = tool[strings.LastIndex(tool, "__")+2:]
	}
	var b strings.Builder
	lower := false
	for _, r := range tool {
		if unicode.IsUpper(r) && lower || !unicode.IsLetter(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
		lower = unicode.IsLower(r)
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool { return !unicode.IsLetter(r) })
}

func (c *call) named(list string) bool {
	return shell.OneOf(list, c.tool...)
}

// use says what a tool does with the files that its arguments name.
func (c *call) use(root argument.Node) *[]string {
	command, _ := root.Member("command")
	switch {
	case command == "view" && !c.shell:
		return &c.Reads
	case c.named("copy"), c.shell:
		return &c.Names
	case c.named(writeTools), slices.ContainsFunc(root.Kids, func(n argument.Node) bool {
		return shell.OneOf("newstring newstr filetext newsource codeedit newtext inserttext", argument.Fold(n.Key)) || shell.OneOf("content contents", argument.Fold(n.Key)) && n.Kind == '"' && pathMember(root)
	}):
		return &c.Writes
	case c.named(readTools):
		return &c.Reads
	}
	return &c.Names
}

func pathMember(root argument.Node) bool {
	return slices.ContainsFunc(root.Kids, func(n argument.Node) bool { return fileMember().MatchString(argument.Fold(n.Key)) })
}

// fileMember matches the folded names of arguments that are files or directories.
var fileMember = lazyregexp.New(`(?:path|file|uri|dir|directory|folder|filename|cwd|root|source|destination)s?$`)

// visit adds what a text or a command says.
func (c *call) visit(t argument.Text) (done bool) {
	dir := ""
	for _, d := range t.Dirs {
		if c.shell || shell.OneOf("cwd workdir workingdirectory workingdir root basepath", argument.Fold(d.Key)) {
			dir = shell.Join(dir, d.Text)
		}
	}
	switch {
	case t.Use == argument.Name:
		c.plausible(dir, t.Text)
	case t.Args == nil:
		c.value(t.Text, t.Use, t.Key, dir)
	case c.shell || t.Use != argument.Command:
		c.command(&shell.Command{Args: t.Args}, dir, 0)
		return true
	}
	return false
}

// value adds what one text says.
func (c *call) value(text string, use argument.Use, key, dir string) {
	trimmed := strings.TrimSpace(text)
	if use != argument.Content || c.named("patch") {
		for _, name := range argument.Patched(text) {
			c.file(&c.Writes, dir, name)
		}
	}
	switch {
	case c.asked && key == "prompt":
		c.words(dir).hosts(text)
	case trimmed == "", use == argument.Content, use == argument.Exclude, strings.HasPrefix(trimmed, "*** Begin Patch"):
	case use == argument.Command:
		c.run(text, key, dir)
	case use == argument.Pattern && c.named("grep search rg ag"), use == argument.Glob && strings.HasPrefix(text, "!"):
	case use == argument.Pattern, use == argument.Glob:
		c.pattern(text, dir)
	case use == argument.Dir && c.shell:
	default:
		c.word(text, key, dir)
	}
}

// run adds a command. What is called so is not always a shell's.
func (c *call) run(text, key, dir string) {
	switch {
	case c.named(otherShell) && !c.named("run bash"):
		c.unclear("a command of another shell")
	case key == "code" || key == "stdin" || key == "chars":
		c.unclear("what is told to a program is not known")
	case c.shell, key != "args" && key != "argv" && strings.ContainsAny(strings.TrimSpace(text), " \t\n;|&$`"):
		c.script(text, dir, 0)
	case key == "args", key == "argv":
		c.word(text, key, dir)
	}
}

// pattern adds the directory in which a tool's own glob begins.
func (c *call) pattern(glob, dir string) {
	if at := strings.IndexAny(glob, "*?[{"); at >= 0 {
		glob = glob[:strings.LastIndexByte(glob[:at], '/')+1]
	}
	if glob == "" && strings.Join(c.tool, "") == "readmanyfiles" {
		glob = "."
	}
	if glob != "" {
		c.file(c.list, dir, glob)
	}
}

// word adds a text that may be a file or an address.
func (c *call) word(text, key, dir string) {
	w, trimmed := c.words(dir), strings.TrimSpace(text)
	switch isURL := shell.OneOf("url urls", key); {
	case strings.ContainsAny(trimmed, "\t\r\n\\") && !strings.Contains(trimmed, " ") && (isURL || slashes().MatchString(trimmed)):
		c.unclear("programs differ in which host is meant: " + trimmed)
	case (isURL || key == "uri") && slashes().MatchString(trimmed), isURL && bare().MatchString(trimmed), shell.OneOf("host hosts hostname", key) && !strings.ContainsAny(trimmed, " /"):
		w.address(trimmed)
	case w.hosts(text):
	case fileMember().MatchString(key):
		list := c.list
		if c.named("copy") {
			list = &c.Reads
			if shell.OneOf("destination dest target to destinationpath targetpath", key) {
				list = &c.Writes
			}
		}
		c.file(list, dir, text)
	default:
		c.plausible(dir, text)
	}
}

func (c *call) words(dir string) *words {
	return &words{finder: c.finder, Command: &shell.Command{}, dir: dir, Usage: &shell.Usage{}}
}
