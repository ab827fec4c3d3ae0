package inspect

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	version    = 1
	maxAnswers = 4                // concurrent requests; others wait
	writeWait  = 30 * time.Second // until a client that does not read is disconnected
)

// An endpoint is the content of a server's endpoint file.
type endpoint struct {
	Version int    `json:"version"`
	Host    string `json:"host"` // the machine's name
	Address string `json:"address"`
	Token   string `json:"token"`
}

// A Server answers queries about a running crawl.
type Server struct {
	file   string
	token  string
	src    Source
	server *http.Server
	listen net.Listener
	stop   context.CancelFunc
	slots  chan struct{}

	mu     sync.Mutex // guards below
	closed bool
	busy   sync.WaitGroup
}

// Listen opens a server for src on a free port of the loopback address, and writes the endpoint file. The caller must
// call Serve, and finally Close.
func Listen(file string, src Source) (_ *Server, err error) {
	s := &Server{file: file, token: rand.Text(), src: src, slots: make(chan struct{}, maxAnswers)}
	if s.listen, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.server = &http.Server{Handler: s.authenticate(s.mux()), ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:    time.Minute,
		MaxHeaderBytes: 64 << 10, BaseContext: func(net.Listener) context.Context { return ctx }}
	if err := s.publish(); err != nil {
		stop()
		return nil, errors.Join(err, s.listen.Close())
	}
	return s, nil
}

// publish atomically writes the file, readable only by the crawl's user.
func (s *Server) publish() error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	text, err := json.Marshal(endpoint{version, host, s.listen.Addr().String(), s.token})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(s.file), filepath.Base(s.file)+".*") // creates the file with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), s.file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Serve answers requests until Close is called.
func (s *Server) Serve() error {
	if err := s.server.Serve(s.listen); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// closeTimeout is the time for answers to running requests when a server closes.
const closeTimeout = time.Second

// Close removes the file, cancels running requests, and waits for their answers for a second: the request that stops the
// crawl is one of them. When it returns, no more calls of the source are in progress.
func (s *Server) Close() error {
	err := RemoveEndpoint(s.file)
	s.stop()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if s.server.Shutdown(ctx) != nil { // a client that does not read
		err = errors.Join(err, s.server.Close())
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.busy.Wait()
	return err
}

// begin registers a request; false if the server is closed.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.busy.Add(1)
	}
	return !s.closed
}

// RemoveEndpoint removes a server's endpoint file. A starting crawl calls it, too, because a killed process leaves the
// file.
func RemoveEndpoint(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the crawl's endpoint file: %w", err)
	}
	return nil
}

// authenticate rejects requests without the token, and limits the number of concurrent requests.
func (s *Server) authenticate(next http.Handler) http.Handler {
	want := []byte("Bearer " + s.token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.begin() {
			return
		}
		defer s.busy.Done()
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			http.Error(w, "the token is not valid for this crawl", http.StatusUnauthorized)
			return
		}
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}
