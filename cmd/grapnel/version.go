package main

import (
	goruntime "runtime"

	"github.com/spf13/cobra"
)

// version is the release; a build may set it by -ldflags.
var version = "0.1.0-dev"

// versionResult is the JSON of version.
type versionResult struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// versionCommand reads no file and starts nothing: scripts call it to see whether
// the program is there at all.
func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs(),
		RunE: func(*cobra.Command, []string) error {
			v := versionResult{version, goruntime.Version(), goruntime.GOOS, goruntime.GOARCH}
			if a.json {
				return a.printJSON(v)
			}
			a.printf("grapnel %s (%s, %s/%s)\n", v.Version, v.Go, v.OS, v.Arch)
			return nil
		},
	}
}
