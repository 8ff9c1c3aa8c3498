// Command docgen writes the tables of the documents that repeat what the code says: packages, phases, causes, codes,
// metrics and so on. A table stands in a document between the marks
//
//	<!-- generated: NAME -->
//	<!-- end -->
//
// and its sentences are the doc comments, help texts and schema descriptions of the code. Run it with "go generate
// ./internal/docs/docgen"; the package's test fails if a document is stale. A new table is one more row of tables.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

//go:generate go run . ../../..

// A table makes the Markdown of one table from the repository below root.
type table func(root string) (string, error)

func tables() map[string]table {
	all := map[string]table{
		"phases":       phaseTable,
		"kinds":        kindTable,
		"causes":       causeTable,
		"codes":        codeTable,
		"reasons":      reasonTable,
		"features":     featureTable,
		"methods":      methodTable,
		"errors":       errorTable,
		"metrics":      metricTable,
		"agent events": eventTable,
		"functions":    functionTable,
		"rules":        ruleTable,
	}
	for name, section := range configSections() {
		all["config "+name] = func(string) (string, error) { return keyTable(section) }
	}
	return all
}

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := run(root); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	docs, err := documents(root)
	if err != nil {
		return err
	}
	for _, name := range docs {
		old, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		text, err := generate(root, string(old))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if text == string(old) {
			continue
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil { //nolint:gosec // a document
			return err
		}
	}
	return nil
}

func documents(root string) ([]string, error) {
	return filepath.Glob(filepath.Join(root, "docs", "*.md"))
}

var mark = regexp.MustCompile(`<!-- generated: ([a-z_ ]+) -->\n`)

func generate(root, doc string) (string, error) {
	const end = "<!-- end -->"
	var out strings.Builder
	for {
		at := mark.FindStringSubmatchIndex(doc)
		if at == nil {
			out.WriteString(doc)
			return out.String(), nil
		}
		name := doc[at[2]:at[3]]
		make := tables()[name]
		if make == nil {
			return "", fmt.Errorf("there is no table %q", name)
		}
		text, err := make(root)
		if err != nil {
			return "", fmt.Errorf("table %s: %w", name, err)
		}
		_, rest, found := strings.Cut(doc[at[1]:], end)
		if !found {
			return "", errors.New("the table " + name + " has no end")
		}
		out.WriteString(doc[:at[1]] + text + end)
		doc = rest
	}
}

func grid(header []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
		}
		b.WriteString("|\n")
	}
	line(header)
	b.WriteString(strings.Repeat("|---", len(header)) + "|\n")
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

func code(word string) string { return "`" + word + "`" }

func codes(words []string) string {
	if len(words) == 0 {
		return "–"
	}
	return "`" + strings.Join(words, "`, `") + "`"
}
