package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/internal/agents/backtest"
	"github.com/grapnelhq/grapnel/internal/rpc"
)

// servedBacktests runs "grapnel backtest" in a process of its own: judging takes memory, processors and plugins that the
// gateway needs for its turns.
type servedBacktests struct{ app *app }

var _ gateway.Backtests = servedBacktests{}

const (
	mostConfigs = 100
	mostReport  = 128 << 20 // more than the rows of a report can take
	mostSaid    = 4 << 10   // how much is kept of what a child says
	endTime     = 5 * time.Second
)

// Configs lists the configuration in force and the YAML files beside it.
func (s servedBacktests) Configs() ([]gateway.BacktestConfig, error) {
	from, err := s.app.configOrigin()
	if err != nil {
		return nil, err
	}
	if from.Path == "" {
		return []gateway.BacktestConfig{{Name: from.name(), InForce: true}}, nil
	}
	dir, own := filepath.Split(from.Path)
	files, err := os.ReadDir(cmp.Or(dir, "."))
	if err != nil {
		return nil, rpc.Errorf(rpc.CodeUnavailable, "the directory of the configuration: %v", unwrapPath(err))
	}
	list := []gateway.BacktestConfig{configChoice(from.Path)}
	list[0].InForce = true
	for _, f := range files {
		if name := f.Name(); filepath.Ext(name) == ".yaml" && name != own && len(list) < mostConfigs {
			list = append(list, configChoice(dir+name))
		}
	}
	return list, nil
}

func configChoice(path string) gateway.BacktestConfig {
	choice := gateway.BacktestConfig{Name: filepath.Base(path)}
	_, err := config.Load(path)
	if found := config.Mistakes(err); len(found) > 0 {
		choice.Error = fmt.Sprintf("%s:%d:%d: %s", choice.Name, found[0].Line, found[0].Column, found[0].Message)
	} else if err != nil {
		choice.Error = choice.Name + ": " + oneLine{unwrapPath(err)}.Error()
	}
	return choice
}

// Run runs the command. What it says where it can do nothing is the error.
func (s servedBacktests) Run(ctx context.Context, q gateway.BacktestQuery, progress func(backtest.Pace)) (*backtest.Report, error) {
	cmd, err := s.command(ctx, q)
	if err != nil {
		return nil, err
	}
	said := &childWords{progress: progress}
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, rpc.Errorf(rpc.CodeUnavailable, "grapnel backtest does not start: %v", err)
	}
	lowerGroup(cmd)
	var r backtest.Report
	bad := json.NewDecoder(io.LimitReader(out, mostReport)).Decode(&r)
	err = cmd.Wait()
	killGroup(cmd)
	switch code := cmd.ProcessState.ExitCode(); {
	case bad == nil && (code == exitOK || code == exitInterrupted):
		return &r, nil
	case ctx.Err() != nil:
		return nil, rpc.Errorf(rpc.CodeUnavailable, "it was cancelled before anything was judged")
	case code == exitUsage || code == exitUnable:
		return nil, rpc.Errorf(rpc.CodeUnavailable, "%s", strings.TrimPrefix(strings.TrimSpace(said.rest.String()), "grapnel: "))
	}
	return nil, fmt.Errorf("grapnel backtest: %w: %s", errors.Join(err, bad), said.rest.String())
}

// command is the command of a backtest. The end of ctx interrupts it, as Ctrl-C does; what does not end then is killed.
func (s servedBacktests) command(ctx context.Context, q gateway.BacktestQuery) (*exec.Cmd, error) {
	from, err := s.app.configOrigin()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, _ := filepath.Split(from.Path)
	cmd := exec.CommandContext(ctx, self) //nolint:gosec // this program
	cmd.Args = []string{"grapnel", "backtest", "--json", "--progress", fmt.Sprintf("--since=%dd", q.Days), "--from=" + q.Agent, "--store=" + s.app.Store}
	if from.Path != "" {
		cmd.Args = append(cmd.Args, "--config="+dir+q.Config)
	}
	if q.Against != "" && from.Path != "" {
		cmd.Args = append(cmd.Args, "--against="+dir+q.Against)
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = endTime
	ownGroup(cmd)
	return cmd, nil
}

// childWords separates the progress in what a child says on standard error from the rest.
type childWords struct {
	progress func(backtest.Pace)
	rest     strings.Builder
	part     []byte // of a line
}

func (w *childWords) Write(p []byte) (int, error) {
	w.part = append(w.part, p...)
	for {
		line, after, whole := bytes.Cut(w.part, []byte("\n"))
		if !whole && len(line) < mostSaid {
			return len(p), nil
		}
		w.part = after
		var pace backtest.Pace
		if bytes.HasPrefix(line, []byte("{")) && json.Unmarshal(line, &pace) == nil {
			w.progress(pace)
		} else if w.rest.Len() < mostSaid {
			w.rest.Write(append(line, '\n'))
		}
	}
}
