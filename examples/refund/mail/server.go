package mail

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Server is a running mail service.
type Server struct {
	outbox *outbox
	http   *http.Server
	addr   net.Addr
	served chan error // the end of http.Serve

	delay atomic.Int64 // nanoseconds
	drops atomic.Int64

	stop   context.CancelFunc
	closed func() error
}

// Serve starts a mail service that keeps its outbox in an SQLite file at path.
// A host left out of addr is 127.0.0.1, as in ":0", which takes any free port.
// The service has no authentication: keep it on the local machine. It ends
// with ctx or with [Server.Close].
func Serve(ctx context.Context, addr, path string) (*Server, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("serve mail: %w", err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	box, err := openOutbox(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("serve mail: %w", err)
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("serve mail: %w", err), box.close())
	}
	s := &Server{outbox: box, addr: ln.Addr(), served: make(chan error, 1)}
	ctx, s.stop = context.WithCancel(ctx)
	s.closed = sync.OnceValue(s.close)
	s.http = &http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		// Requests end with the service, a delayed one too.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	go func() { s.served <- s.http.Serve(ln) }()
	context.AfterFunc(ctx, func() { _ = s.closed() })
	return s, nil
}

// URL is where the service is, for [Client].BaseURL.
func (s *Server) URL() string { return "http://" + s.addr.String() }

// Messages is the outbox, oldest first.
func (s *Server) Messages(ctx context.Context) ([]Stored, error) { return s.outbox.list(ctx) }

// Delay makes the service wait before it answers a message that it has stored:
// a sender whose patience is shorter does not learn that it was sent. 0 ends it.
func (s *Server) Delay(d time.Duration) { s.delay.Store(int64(d)) }

// DropNext makes the service store the next n messages and then close the
// connection without an answer, as a service that crashes at that point does.
func (s *Server) DropNext(n int) { s.drops.Store(int64(n)) }

// Close ends the service and closes its outbox. What was answered is stored;
// more calls do nothing.
func (s *Server) Close() error { return s.closed() }

func (s *Server) close() error {
	s.stop()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return errors.Join(err, s.outbox.close())
}
