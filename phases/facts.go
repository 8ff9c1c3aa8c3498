package phases

// Facts are what is known of a call before it is made, from its arguments and the files that are there. What they state is
// true of the call as it was asked for; what could not be known is missing, and Unparsed says so. They say what the call
// itself does, not what a program does that it starts: "make" is the command make and nothing more.
//
// The engine derives them, once for a call and again when its arguments are rewritten, if a condition or a plugin of the
// phase needs them: a hook that names them in its needs, or one without declared needs whose grant names them. No host and
// no plugin can set them. The zero value is known of nothing.
type Facts struct {
	// Commands are the simple commands that the call may run, in order: all branches, and those inside other commands
	// (sh -c, $( ), xargs, find -exec).
	Commands []Command `json:"commands,omitempty"`
	// Reads, Writes and Names are files and directories: absolute, cleaned, with links resolved as far as they are there.
	// A directory stands for all below it if the call reads or writes it as a whole. Writes are also what is removed,
	// moved or made executable. Names are files that a command names whose use is not known.
	Reads  []string `json:"reads,omitempty"`
	Writes []string `json:"writes,omitempty"`
	Names  []string `json:"names,omitempty"`
	// Hosts are the hosts of addresses in the call, in lower case, without ports.
	Hosts []string `json:"hosts,omitempty"`
	// Outside are those of the files that are not in the project: the directory with .git above the working directory, or
	// the working directory.
	Outside []string `json:"outside,omitempty"`
	// Secrets are files whose secrets the call would get at: .env, private keys, credentials of tools.
	Secrets []string `json:"secrets,omitempty"`
	// Unparsed says that a part of a command could not be read: it may do more than is said here. Why says what.
	Unparsed bool   `json:"unparsed,omitempty"`
	Why      string `json:"why,omitempty"`
}

// Command is one simple command of a call.
type Command struct {
	// Program is the name without its directory; what only starts it (sudo, env, nohup) is left out.
	Program string `json:"program,omitempty"`
	// Words are all words, the program's name first, without quotes and with known variables replaced. A word that could
	// not be known has "…" where that is so.
	Words []string `json:"words,omitempty"`
	// Options are the words that begin with a hyphen, short ones one by one: -rf is -r and -f, --out=x is --out.
	Options []string `json:"options,omitempty"`
}

// Summary returns what is known without saying of which files or hosts: the words of "hosts", "outside", "secrets",
// "unparsed" and "writes" that apply, sorted.
func (f *Facts) Summary() []string {
	var words []string
	for _, w := range []struct {
		word    string
		applies bool
	}{
		{"hosts", len(f.Hosts) > 0}, {"outside", len(f.Outside) > 0}, {"secrets", len(f.Secrets) > 0}, {"unparsed", f.Unparsed}, {"writes", len(f.Writes) > 0},
	} {
		if w.applies {
			words = append(words, w.word)
		}
	}
	return words
}
