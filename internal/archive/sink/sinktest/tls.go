package sinktest

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"kumo/internal/archive/sink"
)

// The credentials of the servers with TLS.
const (
	User     = "kumo"
	Password = "secret"
)

// Certificates returns the folder with the certificates of the servers with TLS. Without it the test is skipped.
func Certificates(t testing.TB) string { return Server(t, "KUMO_TEST_SINKS_TLS") }

// RunTLS tests a server that requires TLS and a password. It checks that other certificate authorities and passwords
// are rejected with permanent errors that have advice and no password. open opens the sink with a file of trusted
// authorities, "" for the machine's own.
func RunTLS(t *testing.T, open func(ctx context.Context, ca, password, place string) (sink.Sink, error)) {
	dir, at := Certificates(t), place(t)
	ca := filepath.Join(dir, "ca.pem")
	s, err := open(t.Context(), ca, Password, at)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), records(0, 10)); err != nil {
		t.Fatal(err)
	}
	same(t, s, records(0, 10), false)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct{ name, ca, password, says string }{
		{"another authority", filepath.Join(dir, "other.pem"), Password, "x509: certificate signed by unknown authority"},
		{"the machine's authorities", "", Password, "x509: certificate signed by unknown authority"},
		{"another password", ca, "hushhush", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := open(t.Context(), c.ca, c.password, at)
			if err == nil {
				err = s.Put(t.Context(), records(0, 1))
				_ = s.Close()
			}
			CheckError(t, err, c.password, c.says)
			if sink.IsTemporary(err) {
				t.Errorf("%v is taken for what is over by itself", err)
			}
		})
	}
}

// TLSProxy is a server that accepts TLS with the password, and forwards to a server without TLS.
func TLSProxy(t *testing.T, to string) (addr string) {
	dir := Certificates(t)
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key"))
	if err != nil {
		t.Fatal(err)
	}
	target := &url.URL{Scheme: "http", Host: to}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Del("Authorization")
	}, ModifyResponse: func(r *http.Response) error {
		if at := r.Header.Get("Location"); at != "" { // the client must continue through the proxy
			r.Header.Set("Location", strings.Replace(at, "http://"+to, "https://"+r.Request.Host, 1))
		}
		return nil
	}}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != User || password != Password {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // errors of handshakes
	s.StartTLS()
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("localhost", port)
}
