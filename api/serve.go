package api

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// bounds are what a connection may take of a server.
type bounds struct {
	header, read, idle time.Duration
	headerBytes        int
}

var listening = bounds{header: 10 * time.Second, read: 30 * time.Second, idle: 2 * time.Minute, headerBytes: 32 << 10}

// Serve answers at a listener until ctx ends; then it takes no new request, and
// lets those under way end within grace. Writing is bounded by each request's own
// deadline, and by write beyond it. What has none is ended by ending, once nothing
// new is taken.
func Serve(ctx context.Context, l net.Listener, h http.Handler, write, grace time.Duration, log *slog.Logger, ending ...func()) error {
	return listening.serve(ctx, l, h, write, grace, log, ending)
}

func (b bounds) serve(ctx context.Context, l net.Listener, h http.Handler, write, grace time.Duration, log *slog.Logger, ending []func()) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: b.header, ReadTimeout: b.read, WriteTimeout: write, IdleTimeout: b.idle, MaxHeaderBytes: b.headerBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	for _, f := range ending {
		server.RegisterOnShutdown(f)
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := server.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("requests were cut off: they had not ended within the time of a shutdown", "grace", grace)
		err = server.Close()
	}
	<-failed
	return err
}
