package wire

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/content/policy"
)

// wall responds with a page to clients with a cookie, and redirects others.
func wall(elsewhere http.HandlerFunc, page string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie("seen"); err == nil {
			html(page)(w, r)
			return
		}
		elsewhere(w, r)
	}
}

// setCookie sets it, and redirects to the page.
func setCookie(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: "seen", Value: "1", Path: "/"})
	http.Redirect(w, r, "/", http.StatusFound)
}

// A site that sets a cookie and redirects to itself is crawled, also via another page.
func TestSiteBehindACookie(t *testing.T) {
	t.Parallel()
	for name, root := range map[string]http.HandlerFunc{"self": wall(setCookie, `<a href="/a">a</a>`),
		"circle": wall(redirect("/set"), `<a href="/a">a</a>`)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, map[string]http.HandlerFunc{"h.test/": root, "h.test/set": setCookie, "h.test/a": html("end")})
			j := s.job(t, "h.test/")
			mustRun(t, j)
			want := []string{"h.test/", "h.test/", "h.test/a"}
			if name == "circle" {
				want = append(want, "h.test/set")
			}
			s.wantAsked(t, want...)
			without := s.job(t, "h.test/")
			without.Dir, without.NoCookies = filepath.Join(t.TempDir(), "without"), true
			mustRun(t, without)
			if name == "self" {
				s.wantAsked(t, append(want, "h.test/")...)
			}
		})
	}
}

// A server that always sets another cookie and never returns a page gets no more requests than allowed redirects.
func TestCookiesWithoutEnd(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := newSite(t, map[string]http.HandlerFunc{"h.test/": func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "n", Value: fmt.Sprint(n.Add(1))})
		http.Redirect(w, r, "/", http.StatusFound)
	}})
	j := s.job(t, "h.test/")
	j.Crawl.MaxRedirects = 3
	mustRun(t, j)
	s.wantAsked(t, "h.test/", "h.test/", "h.test/", "h.test/")
}

// Cookies persist over a completed and a killed run.
func TestCookiesOfAnEarlierRun(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{
		"h.test/": func(w http.ResponseWriter, r *http.Request) {
			http.SetCookie(w, &http.Cookie{Name: "seen", Value: "1", Path: "/"})
			html(`<a href="/a">a</a> <a href="/b">b</a>`)(w, r)
		},
		"h.test/a": html("a"), "h.test/b": html("b")})
	j := s.job(t, "h.test/")
	for pages := range int64(2) {
		j.Crawl.Pages = pages + 1
		if err := run(t, t.Context(), j); !errors.Is(err, policy.ErrLimit) {
			t.Fatal(err)
		}
	}
	j.Crawl.Pages = 0
	mustRun(t, j)
	s.wantAsked(t, "h.test/", "h.test/a", "h.test/b")
	with := 0
	for _, r := range s.heads {
		if _, err := r.Cookie("seen"); err == nil {
			with++
		} else if strings.HasPrefix(r.URL.Path, "/a") || strings.HasPrefix(r.URL.Path, "/b") {
			t.Errorf("%s was asked for without the cookie", r.URL)
		}
	}
	if with != 2 {
		t.Errorf("%d requests with the cookie", with)
	}
}

// A killed crawl resumes with the cookies in its journal. A copy of its folder simulates the kill.
func TestCookiesSurviveAKill(t *testing.T) {
	t.Parallel()
	var j *job.Job
	killed := filepath.Join(t.TempDir(), "killed")
	var once sync.Once
	s := newSite(t, map[string]http.HandlerFunc{
		"h.test/": func(w http.ResponseWriter, r *http.Request) {
			http.SetCookie(w, &http.Cookie{Name: "seen", Value: "1", Path: "/", MaxAge: 1000})
			html(`<a href="/a">a</a>`)(w, r)
		},
		"h.test/a": func(w http.ResponseWriter, r *http.Request) {
			if _, err := r.Cookie("seen"); err != nil {
				t.Error("asked for without the cookie")
			}
			once.Do(func() {
				awaitJournal(t, j.Dir, "seen")
				if err := os.CopyFS(killed, os.DirFS(j.Dir)); err != nil {
					t.Error(err)
				}
			})
			html("a")(w, r)
		}})
	j = s.job(t, "h.test/")
	mustRun(t, j)
	after := *j
	after.Dir = killed
	mustRun(t, &after)
	s.wantAsked(t, "h.test/", "h.test/a", "h.test/a")
}

// awaitJournal returns when the journal of the crawl in dir contains a text.
func awaitJournal(t *testing.T, dir, text string) {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		names, _ := filepath.Glob(filepath.Join(dir, "state", "journal", "*"))
		for _, name := range names {
			if data, err := os.ReadFile(name); err == nil && strings.Contains(string(data), text) {
				return
			}
		}
		runtime.Gosched()
	}
	t.Error("the journal never has it")
}
