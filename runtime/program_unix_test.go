//go:build unix

package runtime_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// program is what the test binary is when it is started as another program.
func program(mode string, args []string) int {
	switch mode {
	case "host":
		return hostProgram()
	case "model":
		return modelProgram()
	case "judge":
		return judgeProgram()
	case "stranger":
		return strangerProgram(args[0])
	}
	return runBad(mode, args)
}

// hostProgram is a host that starts a plugin with children and then does nothing
// until it is killed.
func hostProgram() int {
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{
		Name: "bad", Command: self, Path: self, Args: []string{asProgram, "children"}, Grants: allGrants(),
	}}}
	eng, err := runtime.New(context.Background(), cfg, runtime.Options{Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		_, err = eng.Dispatch(context.Background(), phases.Context{}, &phases.PrePromptCompileInput{})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("served")
	<-make(chan struct{}) // until it is killed
	return 0
}

// strangerProgram is a program of the same user that dials a plugin's socket and
// would speak with it as a host does.
func strangerProgram(socket string) int {
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	defer cancel()
	conn, err := wire.Connect(socket, 0)
	if err != nil {
		fmt.Println("dial:", err)
		return 1
	}
	defer func() { _ = conn.Close() }()
	_, err = wire.Open(ctx, conn, wire.HostOptions{Incarnation: 1, Instance: "bad"})
	switch {
	case err == nil:
		fmt.Println("it speaks with anybody")
		return 1
	case ctx.Err() != nil:
		fmt.Println("it says nothing:", err)
		return 1
	}
	fmt.Println("refused:", err)
	return 0
}
