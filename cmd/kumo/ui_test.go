package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// waitFor calls f until it returns a result.
func waitFor(t *testing.T, f func() string) string {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < 20*time.Second; time.Sleep(50 * time.Millisecond) {
		if s := f(); s != "" {
			return s
		}
	}
	t.Fatal("no answer in 20 s")
	return ""
}

// askCmd requests a page by its URL, as a user would.
func askCmd(ts *testscript.TestScript, not bool, args []string) {
	bare := args[0] == "-token"
	if bare {
		args = args[1:]
	}
	u, err := url.Parse(strings.TrimSpace(ts.ReadFile(args[0])))
	ts.Check(err)
	token := u.Query().Get("token")
	path, query, _ := strings.Cut(args[1], "?")
	u.Path, u.RawQuery = "/"+path, query
	u.Host = net.JoinHostPort("127.0.0.1", u.Port())
	r, err := http.NewRequestWithContext(contextOf(ts), http.MethodGet, u.String(), nil)
	ts.Check(err)
	if token != "" && !bare {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	want := regexp.MustCompile(args[2])
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.DefaultClient.Do(r)
		ts.Check(err)
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		ts.Check(err)
		if want.Match(text) != not {
			return
		}
		if time.Since(begin) > 20*time.Second {
			ts.Fatalf("%s has\n%s", u, text)
		}
	}
}

// A pageAt is a web page's URL, and the token that it requires.
type pageAt struct{ url, token string }

// pageIn waits for the web page of a folder, and finds it as kumo open does.
func pageIn(t *testing.T, dir string) pageAt {
	t.Helper()
	link := waitFor(t, func() string {
		out, _ := exec.Command(kumoProgram(t), "open", dir).Output() // at first there is none
		return strings.TrimSpace(string(out))
	})
	at, token, has := strings.Cut(link, "?token=")
	if !has {
		t.Fatalf("%s has no token", link)
	}
	return pageAt{at, token}
}

// link returns the URL with the token.
func (p pageAt) link() string { return p.url + "?token=" + p.token }

// fetched returns the content at a path below the page; "" if the status is not 200.
func (p pageAt) fetched(t *testing.T, path string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return ""
	}
	return strings.TrimSpace(string(text))
}

type recordIDs struct {
	Records []struct {
		ID  int64
		URL string
	}
}

func idOf(t *testing.T, text, ending string) int64 {
	t.Helper()
	var x recordIDs
	if err := json.Unmarshal([]byte(text), &x); err != nil {
		t.Fatal(err)
	}
	for _, r := range x.Records {
		if strings.HasSuffix(r.URL, ending) {
			return r.ID
		}
	}
	t.Fatalf("no record of %s in %s", ending, text)
	return 0
}
