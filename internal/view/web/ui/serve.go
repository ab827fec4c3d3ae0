package ui

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	maxSilent       = 512             // connections without a complete request
	maxClientSilent = 384             // per address
	headerTime      = 5 * time.Second // for a request's header and the TLS handshake
	endPatience     = 2 * time.Second // for requests in progress
)

// Serve serves requests on l until the context ends, over TLS if there is a certificate.
func (s *Server) Serve(ctx context.Context, l net.Listener, cert, key string) error {
	srv := s.httpServer()
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

// httpServer limits connections. Those without a complete request have slots from which newcomers evict others, so that
// they cannot keep anyone out. Those with a request are limited by the guard.
func (s *Server) httpServer() *http.Server {
	silent := &silentConns{slots: newSlots(maxSilent, maxClientSilent), held: map[net.Conn]*slot{}}
	return &http.Server{Handler: s, ReadHeaderTimeout: headerTime, ReadTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ConnState: silent.changed,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
}

// silentConns are the connections without a complete request since they were opened or last answered.
type silentConns struct {
	slots *slots

	mu   sync.Mutex // guards held
	held map[net.Conn]*slot
}

// changed is called by the server when a connection's state changes.
func (c *silentConns) changed(conn net.Conn, state http.ConnState) {
	if state == http.StateNew || state == http.StateIdle {
		x := c.slots.acquire(conn.RemoteAddr().String(), func() { _ = raw(conn).Close() }) // the reader gets the error
		c.mu.Lock()
		c.held[conn] = x
		c.mu.Unlock()
		return
	}
	c.mu.Lock()
	x := c.held[conn]
	delete(c.held, conn)
	c.mu.Unlock()
	c.slots.release(x)
}

// raw returns the connection below TLS. Closing it never waits for the client.
func raw(conn net.Conn) net.Conn {
	if t, is := conn.(*tls.Conn); is {
		return t.NetConn()
	}
	return conn
}

type connKey struct{} // key of the connection in a request's context

// shrinkBuffer reduces the system's send buffer. With a large one, a write deadline would not notice that a client
// reads nothing.
func shrinkBuffer(r *http.Request) {
	conn, is := r.Context().Value(connKey{}).(net.Conn)
	if !is || r.ProtoMajor != 1 { // others share the connection
		return
	}
	if tcp, is := raw(conn).(*net.TCPConn); is {
		_ = tcp.SetWriteBuffer(eventBuffer) // without it, the deadline is noticed later
	}
}
