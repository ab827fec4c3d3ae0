package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// waitFor asks until there is an answer.
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

// fetched is what is at a URL; "" if that is no answer.
func fetched(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
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

func idsOf(t *testing.T, text string) (ids []int64) {
	t.Helper()
	var x recordIDs
	if err := json.Unmarshal([]byte(text), &x); err != nil {
		t.Fatal(err)
	}
	for _, r := range x.Records {
		ids = append(ids, r.ID)
	}
	return ids
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
