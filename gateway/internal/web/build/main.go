// Command build makes the page's assets: the types of the gateway's methods (src/schema.ts), and the bundles in dist.
// It needs the packages of package-lock.json ("npm ci" in the directory above). With -check it writes nothing, and
// fails if a file is stale.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/grapnelhq/grapnel/gateway"
)

// entries are what is bundled, below src. A view that app.tsx loads later is a file of its own beside app.js, and
// chunk.js is what both need. The editor is loaded by its address.
func entries() []string { return []string{"app.tsx", "editor/editor.ts", "style/app.css"} }

// copied are files that go into dist as they are.
func copied() []string { return []string{"index.html", "icon.svg"} }

func main() {
	check := flag.Bool("check", false, "write nothing; fail if a file is stale")
	web := flag.String("dir", "..", "the `DIR` of the page")
	flag.Parse()
	if err := run(*web, *check); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func run(web string, check bool) error {
	settle := write
	if check {
		settle = compare
	}
	schema, err := gateway.Schema()
	if err != nil {
		return err
	}
	types, err := typescript(schema)
	if err != nil {
		return err
	}
	stale := []error{settle(filepath.Join(web, "src", "schema.ts"), types)}
	for _, entry := range entries() {
		files, err := bundle(web, entry)
		if err != nil {
			return err
		}
		for _, f := range files {
			stale = append(stale, settle(filepath.Join(web, "dist", filepath.Base(f.Path)), f.Contents))
		}
	}
	for _, name := range copied() {
		data, err := os.ReadFile(filepath.Join(web, "src", name))
		if err != nil {
			return err
		}
		stale = append(stale, settle(filepath.Join(web, "dist", name), data))
	}
	return errors.Join(stale...)
}

func bundle(web, entry string) ([]api.OutputFile, error) {
	dir, err := filepath.Abs(web)
	if err != nil {
		return nil, err
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: dir, EntryPoints: []string{"src/" + entry}, Outdir: "dist", Splitting: entry == "app.tsx", ChunkNames: "[name]",
		Bundle: true, MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		Format: api.FormatESModule, Target: api.ES2022, Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsNone,
		JSX: api.JSXAutomatic, JSXImportSource: "preact",
	})
	if len(result.Errors) > 0 {
		return nil, errors.New(string(bytes.Join(formatted(result.Errors), nil)))
	}
	return result.OutputFiles, nil
}

func formatted(list []api.Message) [][]byte {
	var out [][]byte
	for _, text := range api.FormatMessages(list, api.FormatMessagesOptions{Kind: api.ErrorMessage}) {
		out = append(out, []byte(text))
	}
	return out
}

func write(path string, data []byte) error { return os.WriteFile(path, data, 0o644) } //nolint:gosec // a source file

func compare(path string, data []byte) error {
	have, err := os.ReadFile(path)
	if err == nil && !bytes.Equal(have, data) {
		err = fmt.Errorf("%s is stale: run \"go generate ./gateway/internal/web\"", path)
	}
	return err
}
