// Gitleaks writes the rules of a version of gitleaks as the JSON that internal/facts/secret embeds:
//
//	go -C tools run ./gitleaks v8.30.1 >internal/facts/secret/gitleaks.json
//
// Importing gitleaks instead would link 13 MB and 200 modules into a program that wants its expressions alone.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// omitted are rules that internal/facts/secret replaces, and those that need what a message has not: the path of a
// file, or gitleaks' list of allowed words.
var omitted = []string{
	"curl-auth-header", "curl-auth-user", "flutterwave-public-key", "freemius-secret-key", "generic-api-key", "hashicorp-tf-password", "jwt-base64",
	"kubernetes-secret-yaml", "nuget-config-password", "pkcs12-file", "private-key",
}

type rule struct {
	ID       string   `json:"id"                toml:"id"`
	Regex    string   `json:"regex"             toml:"regex"`
	Keywords []string `json:"keywords"          toml:"keywords"`
	Entropy  float64  `json:"entropy,omitempty" toml:"entropy"`
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: gitleaks VERSION")
	}
	if err := write(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func write(version string) error {
	data, err := exec.Command("go", "mod", "download", "-json", "github.com/zricethezav/gitleaks/v8@"+version).Output()
	if err != nil {
		return fmt.Errorf("gitleaks %s cannot be downloaded: %w", version, err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(data, &module); err != nil {
		return err
	}
	var file struct {
		Rules []rule `toml:"rules"`
	}
	if _, err := toml.DecodeFile(filepath.Join(module.Dir, "config", "gitleaks.toml"), &file); err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	fmt.Fprintf(out, `{
  "source": "https://github.com/gitleaks/gitleaks, config/gitleaks.toml, by tools/gitleaks",
  "version": %q,
  "license": "MIT, see gitleaks.LICENSE",
  "rules": [`, version)
	end := "\n"
	for _, r := range file.Rules {
		if slices.Contains(omitted, r.ID) {
			continue
		}
		var line strings.Builder
		encode := json.NewEncoder(&line)
		encode.SetEscapeHTML(false)
		if err := encode.Encode(r); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s    %s", end, strings.TrimSpace(line.String()))
		end = ",\n"
	}
	fmt.Fprint(out, "\n  ]\n}\n")
	return out.Flush()
}
