package ui

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

const (
	maxConnections = 256
	endPatience    = 2 * time.Second // with what is just being answered
)

// Serve answers at l until the context ends, over TLS if there is a certificate.
func (s *Server) Serve(ctx context.Context, l net.Listener, cert, key string) error {
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug)}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		s.end()
		patience, done := context.WithTimeout(context.Background(), endPatience)
		defer done()
		if srv.Shutdown(patience) != nil {
			srv.Close()
		}
		s.Close()
	})
	l = netutil.LimitListener(l, maxConnections)
	var err error
	if cert != "" {
		err = srv.ServeTLS(l, cert, key)
	} else {
		err = srv.Serve(l)
	}
	if !stop() {
		<-ended
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
