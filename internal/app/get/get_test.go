package get

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"kumo/internal/app/job"
	"kumo/internal/base/page"
	"kumo/internal/content/fetch"
)

// A site has a few hosts on one server, distinguished by name: "host/path" → handler.
type site struct {
	*httptest.Server
	agent atomic.Value // the last User-Agent
}

func newSite(t *testing.T, pages map[string]http.HandlerFunc) *site {
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.agent.Store(r.UserAgent())
		host, _, _ := strings.Cut(r.Host, ":")
		if h := pages[host+r.URL.Path]; h != nil {
			h(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// url puts the server's port into http://host/path.
func (s *site) url(hostAndPath string) string {
	host, path, _ := strings.Cut(hostAndPath, "/")
	return "http://" + host + s.port() + "/" + path
}

func (s *site) port() string { return s.URL[strings.LastIndexByte(s.URL, ':'):] }

func html(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, body) }
}

// redirect redirects; PORT in the target is replaced by the server's port.
func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, port, _ := strings.Cut(r.Host, ":")
		http.Redirect(w, r, strings.ReplaceAll(to, "PORT", port), http.StatusFound)
	}
}

func TestGetFollowsRedirects(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/":     redirect("/2"),
		"a.test/2":    redirect("http://b.test:PORT/3"),
		"b.test/3":    html("here"),
		"a.test/mail": redirect("mailto:me"),
		"a.test/loop": redirect("/loop"),
		"a.test/1":    redirect("/"),
	})
	g := Client{Redirects: 2, Fetch: fetch.Config{Resolve: []string{"*:*:127.0.0.1"}}}
	for _, c := range []struct {
		url, last string
		statuses  []int
		wrong     string
	}{
		{"a.test/", "b.test/3", []int{302, 302, 200}, ""},
		{"b.test/3", "b.test/3", []int{200}, ""},
		{"a.test/none", "a.test/none", []int{404}, ""},
		{"a.test/mail", "a.test/mail", []int{302}, ""},
		{"a.test/loop", "a.test/loop", []int{302, 302, 302}, "a loop"},
		{"a.test/1", "a.test/2", []int{302, 302, 302}, "2 in a row"},
	} {
		answers, err := g.URL(t.Context(), s.url(c.url))
		if wrong := fmt.Sprint(err); errors.Is(err, ErrRedirects) != (c.wrong != "") || !strings.Contains(wrong, c.wrong) {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		var got []int
		for _, a := range answers {
			got = append(got, a.Status)
		}
		if last := answers[len(answers)-1]; last.URL != s.url(c.last) || len(got) != len(c.statuses) ||
			got[0] != c.statuses[0] {
			t.Errorf("%s: %v, the last from %s", c.url, got, last.URL)
		}
	}
	if agent := s.agent.Load(); agent != job.UserAgent("") {
		t.Errorf("user agent %q", agent)
	}
}

// TestGetReachesWhatWasTyped: a typed loopback address is allowed, the target of a redirect is not.
func TestGetReachesWhatWasTyped(t *testing.T) {
	other := newSite(t, map[string]http.HandlerFunc{"127.0.0.1/": html("other")})
	s := newSite(t, map[string]http.HandlerFunc{
		"127.0.0.1/":     html("typed"),
		"127.0.0.1/away": redirect(other.URL + "/"),
	})
	answers, err := Client{Redirects: 2}.URL(t.Context(), strings.TrimPrefix(s.URL, "http://"))
	if err != nil || string(answers[0].Body) != "typed" {
		t.Errorf("typed: %v", err)
	}
	answers, err = Client{Redirects: 2}.URL(t.Context(), s.URL+"/away")
	var e *fetch.Error
	if !errors.As(err, &e) || e.Failure != page.Private || len(answers) != 1 {
		t.Errorf("led to: %d answers, %v", len(answers), err)
	}
	answers, err = Client{Redirects: 2, Fetch: fetch.Config{AllowPrivate: true}}.URL(t.Context(), s.URL+"/away")
	if err != nil || string(answers[len(answers)-1].Body) != "other" {
		t.Errorf("allowed: %v", err)
	}
	if _, err := (Client{}).URL(t.Context(), "ftp://a.example/"); err == nil {
		t.Error("ftp was fetched")
	}
}
