package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// gateway is a running grapnel serve.
type gateway struct {
	cmd     *exec.Cmd
	runtime string // directory of the socket, and of nothing else
	config  string
	socket  string
	url     string
	token   string
	env     []string // where programs find it without being told
}

const gatewayConfig = `version: 1
store: sqlite:%[1]s/grapnel.db
serve: {roots: [%[2]s]}
plugins:
  - name: probe
    command: %[3]s
    unsafe_path: true
    grants:
      contribute: [prompt_section, decision, rewrite, tool_bundle]
      sections: [sky]
      tools: [tell]
      see: [arguments, result, forced]
`

// startGateway starts a gateway in a directory of its own. It is ended by stop.
func startGateway(ctx context.Context, bin, dir, roots string) (*gateway, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "grapnel", "grapnel.yaml") // dir is the directory of data, too
	if err := os.MkdirAll(filepath.Dir(config), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(config, fmt.Appendf(nil, gatewayConfig, dir, roots, self), 0o600); err != nil {
		return nil, err
	}
	socketDir, err := os.MkdirTemp("", "hosts") // paths of sockets are short
	if err != nil {
		return nil, err
	}
	g := &gateway{socket: filepath.Join(socketDir, "grapnel", "hook.sock"), runtime: socketDir}
	if err := os.Mkdir(filepath.Dir(g.socket), 0o700); err != nil {
		return nil, err
	}
	g.env, g.config = []string{"XDG_RUNTIME_DIR=" + socketDir, "XDG_DATA_HOME=" + dir}, config
	g.cmd = exec.CommandContext(ctx, filepath.Join(bin, "grapnel"), "serve", "--json", "--config", config, "--socket", g.socket, "--listen", "127.0.0.1:0") // built here
	g.cmd.Env = append([]string{"HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "PATH=" + os.Getenv("PATH")}, g.env...)
	log, err := os.Create(filepath.Join(dir, "gateway.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close() // the gateway has its own
	g.cmd.Stderr = log
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := g.cmd.Start(); err != nil {
		return nil, err
	}
	var ready struct {
		URL string `json:"url"`
	}
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&ready); err != nil {
		return nil, errors.Join(fmt.Errorf("the gateway did not start; see %s: %w", log.Name(), err), g.stop())
	}
	token, err := os.ReadFile(filepath.Join(dir, "grapnel", "token"))
	if err != nil {
		return nil, errors.Join(err, g.stop())
	}
	g.url, g.token = ready.URL, strings.TrimSpace(string(token))
	return g, nil
}

// stop kills the gateway; nothing that it keeps is needed.
func (g *gateway) stop() error {
	err := g.cmd.Process.Kill()
	_ = g.cmd.Wait() // it was killed
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(g.runtime))
}
