package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// longest is how many bytes an answer may have: some more than the gateway's own
// bound, which is 16 MiB.
const longest = 32 << 20

// poster makes each call a POST.
type poster struct {
	url, token string
	http       *http.Client
	ended      chan struct{}
	end        func()
}

var _ way = (*poster)(nil)

// newPoster makes a poster. The transport is its own.
func newPoster(url, token string, transport *http.Transport) *poster {
	transport.MaxIdleConnsPerHost = 8
	p := &poster{url: url, token: token, http: &http.Client{Transport: transport, CheckRedirect: stay}, ended: make(chan struct{})}
	p.end = sync.OnceFunc(func() { close(p.ended) })
	return p
}

func (p *poster) done() <-chan struct{} { return p.ended }

func (p *poster) err() error { return nil }

func (p *poster) close() error {
	p.end()
	p.http.CloseIdleConnections()
	return nil
}

func (p *poster) roundTrip(ctx context.Context, id uint64, request []byte) (*answer, error) {
	select {
	case <-p.ended:
		return nil, fmt.Errorf("%w: the client is closed", ErrLost)
	default:
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(request))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return nil, lost(ctx, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read to its end, or is of no use
	text, err := io.ReadAll(io.LimitReader(resp.Body, longest+1))
	switch {
	case err != nil:
		return nil, lost(ctx, err)
	case len(text) > longest:
		return nil, lost(ctx, fmt.Errorf("an answer of more than %d bytes", longest))
	}
	a, err := decodeAnswer(text)
	if err != nil || !a.forID(id) && (a.Error == nil || !a.noID()) {
		return nil, lost(ctx, fmt.Errorf("%s, and no answer of a gateway", resp.Status))
	}
	return a, nil
}

// decodeAnswer reads a message.
func decodeAnswer(text []byte) (*answer, error) {
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, err
	}
	return &a, nil
}

// lost is the error of a call without an answer: the context's, if that ended.
func lost(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	if errors.Is(err, ErrLost) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}
