package fetch

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/page"
)

// selfSigned returns a certificate of a new key, and the key.
func selfSigned(t *testing.T, subject string, names []string) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: subject}, DNSNames: names,
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	data, err := x509.CreateCertificate(rand.Reader, &c, &c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return data, key
}

// TestHugeCertificates has servers send far more certificates than needed: the handshake fails soon, with a reason.
func TestHugeCertificates(t *testing.T) {
	names := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("host-%06d.example", i))
		}
		return all
	}
	leaf, key := selfSigned(t, "leaf", []string{"slow.example"})
	junk := [][]byte{leaf}
	for range 1000 {
		junk = append(junk, make([]byte, 10<<10))
	}
	var alike [][]byte // issuers with the same name; each must be tried
	for range 400 {
		c, _ := selfSigned(t, "leaf", nil)
		alike = append(alike, c)
	}
	many, manyKey := selfSigned(t, "many", append([]string{"slow.example"}, names(100_000)...))
	fitting, fittingKey := selfSigned(t, "fitting", append(names(9000), "slow.example"))
	for _, c := range []struct {
		name     string
		chain    [][]byte
		key      *ecdsa.PrivateKey
		insecure bool
		why      string // "": accepted
	}{
		{"1,000 certificates of 10 KiB", junk, key, false, "exceeds maximum"},
		{"1,000 certificates of 10 KiB, not checked", junk, key, true, "exceeds maximum"},
		{"100,000 names", [][]byte{many}, manyKey, false, "exceeds maximum"},
		{"100,000 names, not checked", [][]byte{many}, manyKey, true, "exceeds maximum"},
		{"9,000 names", [][]byte{fitting}, fittingKey, false, "unknown authority"},
		{"9,000 names, not checked", [][]byte{fitting}, fittingKey, true, ""},
		{"400 issuers", append([][]byte{leaf}, alike...), key, false, "signature check attempts limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer conn.Close()
						_ = conn.SetDeadline(time.Now().Add(time.Minute))
						s := tls.Server(conn, &tls.Config{
							Certificates: []tls.Certificate{{Certificate: c.chain, PrivateKey: c.key}}})
						if s.Handshake() == nil {
							_, _ = s.Read(make([]byte, 4<<10))
							_, _ = io.WriteString(s, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
						}
					}()
				}
			}()
			url := fmt.Sprintf("https://slow.example:%d/", l.Addr().(*net.TCPAddr).Port)
			client, resp, began := newClient(t, Config{InsecureTLS: c.insecure,
				Resolve: []string{"slow.example:*:127.0.0.1"}}), new(page.Response), time.Now()
			err = client.Get(t.Context(), Request{URL: url}, resp)
			took := time.Since(began)
			t.Logf("%v: %v", took.Round(time.Millisecond), err)
			var e *Error
			switch {
			case c.why == "" && (err != nil || string(resp.Payload) != "hi"):
				t.Errorf("%q, %v", resp.Payload, err)
			case c.why != "" && (!errors.As(err, &e) || !strings.Contains(err.Error(), c.why) || !e.Failure.AffectsHost()):
				t.Errorf("%v, want %q", err, c.why)
			}
			if took > 20*time.Second { // usually some milliseconds
				t.Errorf("it took %v", took)
			}
		})
	}
}
