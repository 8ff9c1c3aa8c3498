package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"
)

const (
	// The gateway is pinged after quietTime without a message, and must answer within pongTime.
	quietTime = 30 * time.Second
	pongTime  = 10 * time.Second
)

const notesAhead = 256 // how many notifications may wait for OnNotification

// socket makes calls over one WebSocket connection. Its goroutines read, write, and deliver notifications.
type socket struct {
	ws     *websocket.Conn
	http   *http.Transport
	notify func(a *answer)
	out    chan []byte
	notes  chan *answer
	gone   chan struct{}
	wg     sync.WaitGroup

	mu      sync.Mutex
	pending map[uint64]chan *answer
	cause   error // why gone is closed; nil after Close
	isGone  bool
}

var _ way = (*socket)(nil)

func newSocket(ctx context.Context, target string, transport *http.Transport, o Options) (*Client, error) {
	header := http.Header{}
	if o.Token != "" {
		header.Set("Authorization", "Bearer "+o.Token)
	}
	//nolint:bodyclose // Dial has read and closed it
	ws, resp, err := websocket.Dial(ctx, target, &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport, CheckRedirect: stay}, HTTPHeader: header})
	if err != nil {
		transport.CloseIdleConnections()
		return nil, refused(ctx, resp, err)
	}
	ws.SetReadLimit(longest)
	s := &socket{
		ws: ws, http: transport,
		notify: func(*answer) {},
		out:    make(chan []byte), notes: make(chan *answer, notesAhead), gone: make(chan struct{}),
		pending: map[uint64]chan *answer{},
	}
	if o.OnNotification != nil {
		s.notify = func(a *answer) { o.OnNotification(a.Method, a.Params) }
	}
	s.wg.Go(s.read)
	s.wg.Go(s.write)
	s.wg.Go(func() {
		for a := range s.notes {
			s.notify(a)
		}
	})
	return &Client{way: s}, nil
}

func refused(ctx context.Context, resp *http.Response, err error) error {
	if resp != nil && resp.Body != nil {
		text, _ := io.ReadAll(resp.Body) // at most 1 KiB
		if a, bad := decodeAnswer(text); bad == nil && a.Error != nil {
			return a.Error
		}
	}
	return fmt.Errorf("client: %w", lost(ctx, err))
}

func (s *socket) done() <-chan struct{} { return s.gone }

func (s *socket) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

func (s *socket) close() error {
	first := s.end(nil)
	var err error
	if first {
		if err = s.ws.Close(websocket.StatusNormalClosure, ""); err != nil {
			err = fmt.Errorf("client: %w", err)
		}
	}
	s.wg.Wait()
	s.http.CloseIdleConnections()
	return err
}

// end marks the connection as gone, and reports whether it was not before.
func (s *socket) end(cause error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isGone {
		return false
	}
	s.isGone, s.cause = true, cause
	close(s.gone)
	return true
}

func (s *socket) fail(cause error) {
	if s.end(cause) {
		_ = s.ws.CloseNow()
	}
}

func (s *socket) lost() error {
	if cause := s.err(); cause != nil {
		return cause
	}
	return fmt.Errorf("%w: the client is closed", ErrLost)
}

func (s *socket) roundTrip(ctx context.Context, id uint64, request []byte) (*answer, error) {
	reply := make(chan *answer, 1)
	s.mu.Lock()
	s.pending[id] = reply
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.pending, id)
	}()
	select {
	case s.out <- request:
	case <-s.gone:
		return nil, s.lost()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case a := <-reply:
		return a, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.gone:
	}
	select { // an answer before the end counts
	case a := <-reply:
		return a, nil
	default:
		return nil, s.lost()
	}
}

// write writes requests, and pings when there are none. A gateway that works on calls is not
// pinged: it may not be reading.
func (s *socket) write() {
	ctx := context.Background()
	quiet := time.NewTicker(quietTime)
	defer quiet.Stop()
	for {
		select {
		case <-s.gone:
			return
		case request := <-s.out:
			if err := s.ws.Write(ctx, websocket.MessageText, request); err != nil {
				s.fail(fmt.Errorf("%w: %w", ErrLost, err))
				return
			}
		case <-quiet.C:
			s.mu.Lock()
			waiting := len(s.pending)
			s.mu.Unlock()
			if waiting > 0 {
				continue
			}
			if err := s.ping(); err != nil {
				s.fail(fmt.Errorf("%w: it does not answer pings: %w", ErrLost, err))
				return
			}
		}
	}
}

func (s *socket) ping() error {
	ctx, cancel := context.WithTimeout(context.Background(), pongTime)
	defer cancel()
	return s.ws.Ping(ctx)
}

func (s *socket) read() {
	defer close(s.notes)
	for {
		_, text, err := s.ws.Read(context.Background())
		if closed, ok := errors.AsType[websocket.CloseError](err); ok && closed.Reason != "" {
			err = errors.New(closed.Reason)
		}
		var a *answer
		if err == nil {
			a, err = decodeAnswer(text)
		}
		if err == nil {
			err = s.take(a)
		}
		if err != nil {
			s.fail(fmt.Errorf("%w: %w", ErrLost, err))
			return
		}
	}
}

func (s *socket) take(a *answer) error {
	if a.Method != "" {
		select {
		case s.notes <- a:
			return nil
		default:
			return fmt.Errorf("%d notifications wait to be handled: OnNotification is too slow", notesAhead)
		}
	}
	reply, ok := s.whose(a)
	switch {
	case ok:
		reply <- a
	case a.noID() && a.Error != nil:
		return a.Error
	}
	return nil // or nobody waits for it
}

// whose finds the call of an answer. An error without an id belongs to the only call, if there is one.
func (s *socket) whose(a *answer) (chan<- *answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.noID() && a.Error != nil && len(s.pending) == 1 {
		for id, reply := range s.pending {
			delete(s.pending, id)
			return reply, true
		}
	}
	id, err := strconv.ParseUint(string(a.ID), 10, 64)
	reply, ok := s.pending[id]
	delete(s.pending, id)
	return reply, ok && err == nil
}
