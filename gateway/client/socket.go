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

// Times of a socket.
const (
	// quietTime is how long the gateway may be silent before it is asked for a sign
	// of life, and signTime how long it may take to give one.
	quietTime = 30 * time.Second
	signTime  = 10 * time.Second
)

// notesAhead is how many notifications may wait for OnNotification.
const notesAhead = 256

// socket makes calls over one WebSocket connection. It has three goroutines: one
// reads, one writes, one tells notifications.
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
	cause   error // why gone is closed; nil for Close
	isGone  bool
}

var _ way = (*socket)(nil)

// newSocket connects. The transport is the socket's.
func newSocket(ctx context.Context, target string, transport *http.Transport, o Options) (*socket, error) {
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
	s.wg.Go(s.tell)
	return s, nil
}

// refused is the gateway's own error, if the handshake's answer has one.
func refused(ctx context.Context, resp *http.Response, err error) error {
	if resp != nil && resp.Body != nil {
		text, _ := io.ReadAll(resp.Body) // at most 1 KiB is there
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

// end marks the connection as gone, and reports whether it was not before. Calls
// that wait find out by themselves.
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

// fail ends a connection that is of no use any more.
func (s *socket) fail(cause error) {
	if s.end(cause) {
		_ = s.ws.CloseNow()
	}
}

// lost is the error of calls that wait when the connection goes.
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
	defer s.forget(id)
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
	select { // what came before the end counts
	case a := <-reply:
		return a, nil
	default:
		return nil, s.lost()
	}
}

// forget stops waiting for an answer.
func (s *socket) forget(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, id)
}

// write writes requests, and asks for a sign of life when there is nothing to say.
// A gateway that works on calls is not asked: it may not be reading.
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
			if s.waiting() > 0 {
				continue
			}
			if err := s.ping(); err != nil {
				s.fail(fmt.Errorf("%w: it gives no sign of life: %w", ErrLost, err))
				return
			}
		}
	}
}

// ping asks for a sign of life.
func (s *socket) ping() error {
	ctx, cancel := context.WithTimeout(context.Background(), signTime)
	defer cancel()
	return s.ws.Ping(ctx)
}

// waiting is how many calls wait for an answer.
func (s *socket) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending)
}

// read reads answers and notifications until the connection ends.
func (s *socket) read() {
	defer close(s.notes)
	for {
		_, text, err := s.ws.Read(context.Background())
		if err != nil {
			s.fail(fmt.Errorf("%w: %w", ErrLost, closeReason(err)))
			return
		}
		a, err := decodeAnswer(text)
		if err == nil {
			err = s.take(a)
		}
		if err != nil {
			s.fail(fmt.Errorf("%w: %w", ErrLost, err))
			return
		}
	}
}

// take delivers a message.
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
	return nil // else nobody waits for it any more
}

// whose finds who waits for an answer. An error without an id is about the only
// call there is, or it is not known which.
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

// tell calls OnNotification.
func (s *socket) tell() {
	for a := range s.notes {
		s.notify(a)
	}
}

// closeReason makes a close frame's reason the message.
func closeReason(err error) error {
	if ce, ok := errors.AsType[websocket.CloseError](err); ok && ce.Reason != "" {
		return errors.New(ce.Reason)
	}
	return err
}
