package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// clubCmd serves pages /0 to /9, each with a link to the next, to clients that are logged in as me with the password
// open-sesame, at $CLUB/login. A session ends after four pages. /hello sets a cookie and redirects to itself. The pages
// /visitors/0 to /visitors/49 are such a chain for clients with the cookie that the first one sets.
func clubCmd(ts *testscript.TestScript, _ bool, _ []string) {
	var mu sync.Mutex
	session, left := 0, 0
	mux := http.NewServeMux()
	mux.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if token := fmt.Sprint("token", session); r.Method != http.MethodPost {
			fmt.Fprintf(w, `<form method=post><input type=hidden name=csrf value=%s><input name=user>
				<input type=password name=pw></form>`, token)
			return
		} else if r.PostFormValue("csrf") != token || r.PostFormValue("user") != "me" ||
			r.PostFormValue("pw") != "open-sesame" {
			http.Redirect(w, r, "/login?wrong", http.StatusSeeOther)
			return
		}
		session++
		left = 4
		http.SetCookie(w, &http.Cookie{Name: "session", Value: fmt.Sprint("sesame", session), Path: "/"})
		http.Redirect(w, r, "/welcome", http.StatusSeeOther)
	})
	mux.HandleFunc("/welcome", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "log out") })
	mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie("hello"); err != nil {
			http.SetCookie(w, &http.Cookie{Name: "hello", Value: "again"})
			http.Redirect(w, r, "/hello", http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>hello</title>")
	})
	mux.HandleFunc("/visitors/{n}", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.PathValue("n"))
		if _, missing := r.Cookie("visitor"); err != nil || missing != nil && n > 0 {
			http.Error(w, "no cookie", http.StatusForbidden)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "visitor", Value: "yes", Path: "/"})
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<a href="/visitors/%d">next</a>`, min(n+1, 49))
	})
	mux.HandleFunc("/{n}", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var n int
		if _, err := fmt.Sscan(r.PathValue("n"), &n); err != nil || n > 9 {
			http.NotFound(w, r)
			return
		}
		if c, err := r.Cookie("session"); err != nil || c.Value != fmt.Sprint("sesame", session) || left == 0 {
			http.Redirect(w, r, "/login", http.StatusFound)
			return
		}
		left--
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<title>member %d</title>`, n)
		if n < 9 {
			fmt.Fprintf(w, `<a href="/%d">next</a>`, n+1)
		}
	})
	s := httptest.NewServer(mux)
	ts.Defer(s.Close)
	ts.Setenv("CLUB", s.URL)
}
