package secret

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

func TestTextComesBack(t *testing.T) {
	s := New()
	if s == New() || s.IsZero() {
		t.Fatal("two secrets are equal, or none")
	}
	text := s.Text()
	spaced := " " + strings.ToUpper(text[:10]) + "-" + text[10:] + "\n"
	for _, from := range []string{text, spaced} {
		if got, err := Parse(from); err != nil || got != s {
			t.Errorf("Parse(%q): %v", from, err)
		}
	}
	if len(text) != 56 {
		t.Errorf("the text has %d letters", len(text))
	}
	if none, err := Parse(" "); err != nil || !none.IsZero() {
		t.Errorf("an empty text: %v", err)
	}
}

func TestTypingMistakesAreFound(t *testing.T) {
	text := New().Text()
	for i := range text {
		other := byte('a')
		if text[i] == other {
			other = 'b'
		}
		for _, wrong := range []string{text[:i] + string(other) + text[i+1:], text[:i], text[:i] + "1" + text[i+1:]} {
			if _, err := Parse(wrong); wrong != "" && !errors.Is(err, ErrChecksum) {
				t.Errorf("Parse(%q): %v", wrong, err)
			}
		}
	}
}

func TestNoPrintGivesItAway(t *testing.T) {
	s := New()
	inside := struct{ Secret Secret }{s}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%q"} {
		for _, v := range []any{s, &s, inside} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, s.Text()) || strings.Contains(got,
				fmt.Sprint(s.key[0], " ", s.key[1])) ||
				strings.Contains(got, fmt.Sprintf("%x", s.key[:8])) {
				t.Errorf("%s of %T prints %s", verb, v, got)
			}
		}
	}
}

func TestDerivedKeysDiffer(t *testing.T) {
	a, b := New(), New()
	x, _ := a.Derive("one", 32)
	again, _ := a.Derive("one", 32)
	y, _ := a.Derive("two", 32)
	z, _ := b.Derive("one", 32)
	if !bytes.Equal(x, again) || bytes.Equal(x, y) || bytes.Equal(x, z) {
		t.Error("a key does not follow from secret and purpose alone")
	}
}

func TestTheAuthorityFollowsFromTheSecret(t *testing.T) {
	s := New()
	one, _, err := s.authority()
	if err != nil {
		t.Fatal(err)
	}
	two, _, err := s.authority()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one.Raw, two.Raw) {
		t.Error("two processes make two authorities of one secret")
	}
}

func TestOnlyTheSecretOpens(t *testing.T) {
	a, b := New(), New()
	serverA, _, _ := a.TLS()
	_, clientA, _ := a.TLS()
	serverB, clientB, _ := b.TLS()
	nobody := clientA.Clone()
	nobody.Certificates = nil
	trusting := clientB.Clone()
	trusting.InsecureSkipVerify = true
	for _, c := range []struct {
		name           string
		server, client *tls.Config
		ok             bool
	}{
		{"the same secret", serverA, clientA, true},
		{"another client's", serverA, clientB, false},
		{"another server's", serverB, clientA, false},
		{"a client without a certificate", serverA, nobody, false},
		{"a client that trusts everybody", serverA, trusting, false},
	} {
		if err := exchange(t, c.server, c.client); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// exchange sends one byte from a server to a client.
func exchange(t *testing.T, server, client *tls.Config) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			served <- err
			return
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, err = tls.Server(conn, server).Write([]byte{1})
		served <- err
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, err = tls.Client(conn, client).Read(make([]byte, 1))
	conn.Close()
	return errors.Join(err, <-served)
}
