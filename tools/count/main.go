// Command count prints what the repository weighs: lines by area, public packages and names, words of documents, and what the
// programs link. `make count` runs it. With -cold it also times a first build and the tests from an empty build cache.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// An area is a directory below which Go files are counted together.
type area struct {
	Name  string `json:"area"`
	Code  int    `json:"code"`
	Tests int    `json:"tests"`
}

// A figure is one number of the whole repository.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
}

type report struct {
	Areas   []area   `json:"areas"`
	Figures []figure `json:"figures"`
}

// A word is what stands between blanks, and has a letter or a digit: the bars of a table are none.
var word = regexp.MustCompile(`\S*[\pL\pN]\S*`)

func main() {
	log.SetFlags(0)
	asJSON := flag.Bool("json", false, "print JSON")
	cold := flag.Bool("cold", false, "time the first run of the demo and of the tests, which takes minutes")
	flag.Parse()
	check(os.Chdir(strings.TrimSpace(output("git", "rev-parse", "--show-toplevel"))))
	files := strings.Fields(output("git", "ls-files"))
	r := report{Areas: areas(files), Figures: slices.Concat(sizes(files), surface(files), programs())}
	if *cold {
		r.Figures = append(r.Figures, times()...)
	}
	if *asJSON {
		check(json.NewEncoder(os.Stdout).Encode(r))
		return
	}
	r.print()
}

func (r report) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "area\tcode\ttests\t")
	for _, a := range r.Areas {
		fmt.Fprintf(w, "%s\t%d\t%d\t\n", a.Name, a.Code, a.Tests)
	}
	fmt.Fprintln(w)
	for _, f := range r.Figures {
		fmt.Fprintf(w, "%s\t%g\t%s\t\n", f.Name, f.Value, f.Unit)
	}
	check(w.Flush())
}

// areas counts the lines of Go files by directory: two levels deep, below what has a module of its own by that module.
func areas(files []string) []area {
	by := map[string]*area{}
	for _, file := range goFiles(files) {
		name := strings.Join(strings.SplitN(path.Dir(file), "/", 3)[:min(2, strings.Count(file, "/"))], "/")
		if by[name] == nil {
			by[name] = &area{Name: name}
		}
		if strings.HasSuffix(file, "_test.go") {
			by[name].Tests += lines(file)
		} else {
			by[name].Code += lines(file)
		}
	}
	var all []area
	for _, a := range by {
		all = append(all, *a)
	}
	slices.SortFunc(all, func(a, b area) int { return b.Code - a.Code })
	return all
}

// sizes adds the lines of Go up, and the words of documents.
func sizes(files []string) []figure {
	nested := nestedModules(files)
	var root, code, tests, words int
	for _, file := range goFiles(files) {
		switch n := lines(file); {
		case strings.HasSuffix(file, "_test.go"):
			tests += n
		case slices.ContainsFunc(nested, func(dir string) bool { return strings.HasPrefix(file, dir+"/") }):
			code += n
		default:
			root, code = root+n, code+n
		}
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".md") && !strings.Contains(file, "testdata/") && !strings.Contains(file, "scaffold/") {
			words += len(word.FindAllIndex(read(file), -1))
		}
	}
	return []figure{
		{Name: "Go, whole repository", Value: float64(code), Unit: "lines"},
		{Name: "Go, root module", Value: float64(root), Unit: "lines"},
		{Name: "tests", Value: float64(tests), Unit: "lines"},
		{Name: "documents", Value: float64(words), Unit: "words"},
	}
}

// surface counts the packages that others can import, in all modules, with the names that they export, and the directories of internal.
func surface(files []string) []figure {
	packages, internals, names := map[string]bool{}, map[string]bool{}, 0
	for _, file := range goFiles(files) {
		if rest, ok := strings.CutPrefix(file, "internal/"); ok {
			internals[strings.SplitN(rest, "/", 2)[0]] = true
		}
		if strings.HasSuffix(file, "_test.go") || strings.Contains("/"+file, "/internal/") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		check(err)
		if parsed.Name.Name == "main" {
			continue
		}
		packages[path.Dir(file)] = true
		names += exported(parsed)
	}
	return []figure{
		{Name: "public packages", Value: float64(len(packages))},
		{Name: "exported names", Value: float64(names)},
		{Name: "directories in internal", Value: float64(len(internals))},
	}
}

// exported counts the exported declarations of a file, without methods.
func exported(file *ast.File) int {
	n := 0
	count := func(name *ast.Ident) {
		if name.IsExported() {
			n++
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				count(d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					count(s.Name)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						count(name)
					}
				}
			}
		}
	}
	return n
}

// programs counts the packages that the programs link, and their size without debug data.
func programs() []figure {
	var all []figure
	for _, program := range []string{"grapnel", "grapnel-hook"} {
		file := path.Join(os.TempDir(), fmt.Sprintf("count-%d-%s", os.Getpid(), program))
		output("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, "./cmd/"+program)
		info, err := os.Stat(file)
		check(err)
		check(os.Remove(file))
		all = append(all,
			figure{Name: program + ": packages", Value: float64(len(strings.Fields(output("go", "list", "-deps", "./cmd/"+program))))},
			figure{Name: program + ": stripped", Value: float64(info.Size()/100_000) / 10, Unit: "MB"})
	}
	return all
}

// times builds and tests from an empty build cache, with modules at hand.
func times() []figure {
	cache, err := os.MkdirTemp("", "count-cache-")
	check(err)
	defer func() { check(os.RemoveAll(cache)) }()
	check(os.Setenv("GOCACHE", cache))
	return []figure{
		timed("demo, first run", "go", "run", "./cmd/grapnel", "demo"),
		timed("tests, build cache of the demo", "go", "test", "./..."),
		timed("tests, all built", "go", "test", "-count", "1", "./..."),
	}
}

func timed(name string, command ...string) figure {
	began := time.Now()
	output(command[0], command[1:]...)
	return figure{Name: name, Value: time.Since(began).Round(time.Second).Seconds(), Unit: "s"}
}

// goFiles are the Go files that people write.
func goFiles(files []string) []string {
	var all []string
	for _, file := range files {
		if strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, ".pb.go") {
			all = append(all, file)
		}
	}
	return all
}

func nestedModules(files []string) []string {
	var all []string
	for _, file := range files {
		if dir, ok := strings.CutSuffix(file, "/go.mod"); ok {
			all = append(all, dir)
		}
	}
	return all
}

func lines(file string) int { return bytes.Count(read(file), []byte("\n")) }

func read(file string) []byte {
	data, err := os.ReadFile(file)
	check(err)
	return data
}

func output(name string, args ...string) string {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		log.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
