package fetch

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"kumo/internal/base/page"
)

// Changed settings apply from the next exchange on.
func TestMannersChange(t *testing.T) {
	agents := make(chan string, 2)
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agents <- r.UserAgent()
		if r.URL.Path == "/slow" {
			<-release
		}
	}))
	defer s.Close()
	defer close(release)
	c, err := New(Config{UserAgent: "before", AllowPrivate: true, Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	get := func(path string) error {
		var resp page.Response
		return c.Get(t.Context(), Request{URL: s.URL + path}, &resp)
	}
	if err := get("/"); err != nil || <-agents != "before" {
		t.Errorf("before: %v", err)
	}
	c.SetLiveSettings(LiveSettings{UserAgent: "after", Timeout: 50 * time.Millisecond})
	if err := get("/slow"); err == nil || <-agents != "after" {
		t.Errorf("a server that does not answer in the new time: %v", err)
	}
}
