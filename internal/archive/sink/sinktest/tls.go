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

// Who is let in by the servers that speak TLS.
const (
	User     = "kumo"
	Password = "secret"
)

// Certificates is the folder that has the certificates of the servers that speak TLS. Without it the test is skipped.
func Certificates(t testing.TB) string { return Server(t, "KUMO_TEST_SINKS_TLS") }

// RunTLS tests a server that speaks TLS and wants a password: it lets in who trusts the authority that has signed its
// certificate, and knows the password; to others the error says what is wrong, and not the password, and is none that
// is over by itself. open opens the sink with the file of authorities that are trusted, "" for the machine's own.
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

// TLSProxy is a server that speaks TLS, and lets who has the password through to one that does not.
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
		if at := r.Header.Get("Location"); at != "" { // by which who asks goes on
			r.Header.Set("Location", strings.Replace(at, "http://"+to, "https://"+r.Request.Host, 1))
		}
		return nil
	}}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != User || password != Password {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "who is that?", http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // of handshakes that fail
	s.StartTLS()
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("localhost", port)
}
