package wire

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"kumo/internal/base/weburl"
	"kumo/internal/content/policy"
)

// A server may require URLs that the rules change. Then its redirects are followed, and no page is lost.
func TestRulesDoNotLosePagesToRedirects(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{
		"h.test/":              redirect("http://www.h.test:PORT/"),
		"h.test/a":             redirect("http://www.h.test:PORT/a"),
		"www.h.test/":          html(`<a href="/a?utm_source=x">a</a> <a href="http://h.test:PORT/a">a</a> <a href="/dir/">dir</a>`),
		"www.h.test/a":         html(`<a href="/">home</a>`),
		"h.test/dir/":          redirect("/dir/index.php"),
		"h.test/dir/index.php": html(`end`),
	})
	j := s.job(t, "www.h.test/")
	j.Crawl.Canon = weburl.DropWWW | weburl.DropTracking | weburl.DropIndex
	mustRun(t, j)
	want := []string{"h.test/", "www.h.test/", "h.test/a", "www.h.test/a", "h.test/dir/", "h.test/dir/index.php"}
	s.wantAsked(t, want...)
	j2 := *j
	mustRun(t, &j2)
	s.wantAsked(t, want...)
}

// Without cookies, some servers create a new session for each request, endlessly.
func TestRulesWithASessionInEachRedirect(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := newSite(t, map[string]http.HandlerFunc{
		"h.test/":                  html(`<a href="/once">once</a> <a href="/ever">ever</a>`),
		"h.test/once":              redirect("/once;jsessionid=1"),
		"h.test/once;jsessionid=1": html(`<a href="/two;jsessionid=1">two</a>`),
		"h.test/two":               html(`<a href="/once;jsessionid=2">again</a>`),
		"h.test/ever": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, fmt.Sprintf("/ever?PHPSESSID=%d", n.Add(1)), http.StatusFound)
		},
	})
	j := s.job(t, "h.test/")
	j.Crawl.Canon, j.Crawl.MaxRedirects = weburl.DropSession, 3
	mustRun(t, j)
	s.wantAsked(t, "h.test/", "h.test/once", "h.test/once;jsessionid=1", "h.test/two",
		"h.test/ever", "h.test/ever?PHPSESSID=1", "h.test/ever?PHPSESSID=2", "h.test/ever?PHPSESSID=3")
}

// The rules may change a seed's host. Secrets are sent to the host that the user named, in later runs, too.
func TestRulesDoNotSendSecretsElsewhere(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{"h.test/": html(`<a href="/2">2</a>`),
		"h.test/2": html(`<a href="/3">3</a>`), "h.test/3": html("end")})
	j := s.job(t, "www.h.test/")
	j.Crawl.Canon, j.Crawl.Pages = weburl.DropWWW, 1
	j.Fetch.User, j.Fetch.Password = "me", "hunter2"
	if err := run(t, t.Context(), j); !errors.Is(err, policy.ErrLimit) {
		t.Fatal(err)
	}
	j.Crawl.Pages = 0
	mustRun(t, j)
	s.wantAsked(t, "h.test/", "h.test/2", "h.test/3")
	for _, r := range s.heads {
		if _, _, auth := r.BasicAuth(); auth {
			t.Errorf("%s%s was told the password", r.Host, r.URL)
		}
	}
}
