package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Closer is what a plugin inside the host may be besides: one that starts
// something of its own, such as a watch, ends it here. [Engine.Close] calls it
// once, when no more calls are made; one that was abandoned may still run. A
// reload does not call it, for the plugin is one value under every
// configuration. A *sdk.Plugin is one.
type Closer interface {
	// Close must return when ctx ends.
	Close(ctx context.Context) error
}

// closePlugins closes the plugins inside the host, all at the same time. Like
// processes they have their grace, however little time the caller has left.
func (e *Engine) closePlugins(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainGrace)
	defer cancel()
	names := keys(e.opts.InProcess)
	errs := make([]error, len(names))
	var wait sync.WaitGroup
	for i, name := range names {
		if c, ok := e.opts.InProcess[name].(Closer); ok {
			wait.Go(func() { errs[i] = closePlugin(ctx, name, c) })
		}
	}
	wait.Wait()
	return errors.Join(errs...)
}

// closePlugin closes one. As with any call, one that ignores ctx is abandoned.
func closePlugin(ctx context.Context, name string, c Closer) error {
	_, err := abandonable(ctx, func() {}, func() (*struct{}, error) { return nil, c.Close(ctx) })
	if err != nil {
		return fmt.Errorf("close the plugin %s: %w", name, err)
	}
	return nil
}
