package api

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Listening bounds what a connection may take of a server.
const (
	headerFor      = 10 * time.Second
	readFor        = 30 * time.Second
	idleFor        = 2 * time.Minute
	maxHeaderBytes = 32 << 10
)

// Serve answers at a listener until ctx ends; then it takes no new request, and
// lets those under way end within grace. Writing is bounded by each request's own
// deadline, and by write beyond it.
func Serve(ctx context.Context, l net.Listener, h http.Handler, write, grace time.Duration, log *slog.Logger) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: headerFor, ReadTimeout: readFor, WriteTimeout: write, IdleTimeout: idleFor, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
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
