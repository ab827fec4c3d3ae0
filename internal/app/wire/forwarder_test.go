package wire

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
)

// A forwarder is an HTTP proxy that can be stopped and started.
type forwarder struct {
	*testing.T
	at string

	mu     sync.Mutex
	server *http.Server
}

func newForwarder(t *testing.T) *forwarder {
	f := &forwarder{T: t, at: "127.0.0.1:0"}
	f.start()
	t.Cleanup(f.stop)
	return f
}

func (f *forwarder) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, err := net.Listen("tcp", f.at)
	if err != nil {
		f.Fatal(err)
	}
	f.at = l.Addr().String()
	f.server = &http.Server{Handler: f}
	go f.server.Serve(l)
}

func (f *forwarder) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.server.Close()
}

func (f *forwarder) url() *url.URL { return &url.URL{Scheme: "http", Host: f.at} }

func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.RequestURI = ""
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
	w.WriteHeader(answer.StatusCode)
	io.Copy(w, answer.Body)
}
