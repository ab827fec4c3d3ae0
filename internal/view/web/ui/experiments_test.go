package ui

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kumo/internal/view/results"
)

// Pages and answers about experiments are as described; nothing in their files runs or is markup.
func TestExperiments(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "rank")
	e := results.Experiment{Experiment: hostile, About: hostile, Command: "kumo sim rank " + hostile, Version: hostile,
		Statements: []results.Statement{{Of: hostile, Seen: true, Statement: hostile, Measured: hostile},
			{Statement: "more", Why: hostile}},
		Tables:   []string{"t.csv", "../secret.csv", "none.csv", "bad.csv", hostile},
		Pictures: []results.Picture{{File: "p.svg", Title: hostile}, {File: "../p.svg"}, {File: hostile}}, Printed: hostile}
	const svg = `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>`
	err := errors.Join(os.MkdirAll(dir, 0o777), e.Write(dir), os.WriteFile(filepath.Join(root, "secret.csv"),
		[]byte("a\n1\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "t.csv"), []byte("name,"+`"`+strings.ReplaceAll(hostile, `"`, `""`)+`"`+"\n"+
			strings.Repeat("x,<script>\n", 300)), 0o600),
		os.WriteFile(filepath.Join(dir, "bad.csv"), []byte("a\n\"x\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "p.svg"), []byte(svg), 0o600), os.Mkdir(filepath.Join(root, "broken"), 0o777),
		os.WriteFile(filepath.Join(root, "broken", results.Name), []byte("<script>"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Experiments: []string{root, dir}, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(s.Close)
	b := &bed{ui: s, Server: httptest.NewServer(s)}
	t.Cleanup(b.Close)
	c, asked := newChecker(t), map[string]int{}
	for _, end := range (*experiments)(nil).endpoints() {
		for _, at := range []string{"rank t.csv", "rank none.csv", "rank other.csv", "rank ..%2Fsecret.csv", "none t.csv",
			"broken t.csv", "rank bad.csv"} {
			for _, q := range []string{"", "?limit=2", "?limit=0", "?cursor=7", "?cursor=x", "?cursor=999999"} {
				parts := strings.Fields(at)
				path := strings.NewReplacer("{experiment}", parts[0], "{table}", parts[1]).Replace(end.path)
				resp, text := b.ask(t, http.MethodGet, "/api/v1"+path+q, nil)
				if err := c.check("/api/v1"+end.path, resp.StatusCode, resp.Header.Get("Content-Type"), []byte(text)); err != nil {
					t.Errorf("%s%s: %d: %v\n%.300s", path, q, resp.StatusCode, err, text)
				}
				if resp.StatusCode == http.StatusOK {
					asked[end.name+" "+at]++
				}
			}
		}
	}
	if asked["table rank t.csv"] == 0 || asked["table rank ..%2Fsecret.csv"] > 0 || asked["experiment rank t.csv"] == 0 ||
		asked["experiments none t.csv"] == 0 {
		t.Errorf("%v", asked)
	}
	rows, cursor := 0, ""
	for {
		_, text := b.ask(t, http.MethodGet, "/api/v1/experiments/rank/tables/t.csv?limit=70"+cursor, nil)
		var p tablePart
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatal(err, text)
		}
		rows += len(p.Rows)
		if p.Next == nil {
			break
		}
		next, _ := json.Marshal(p.Next)
		cursor = "&cursor=" + string(next)
	}
	if rows != 300 {
		t.Errorf("%d rows in parts", rows)
	}
	for path, want := range map[string]string{"/crawls": `href="/experiments"`, "/experiments": "1 of 2",
		"/experiments/rank":              "&lt;script&gt;alert(&#39;title&#39;)&lt;/script&gt;",
		"/experiments/rank/tables/t.csv": "Next rows"} {
		resp, text := b.ask(t, http.MethodGet, path, nil)
		if resp.StatusCode != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d, no %s in\n%s", path, resp.StatusCode, want, text)
		}
		wantTame(t, path, resp, text)
	}
	for path, want := range map[string]string{"p.svg": svg, "t.csv": "name,"} {
		resp, text := b.ask(t, http.MethodGet, "/experiments/rank/files/"+path, nil)
		if resp.StatusCode != http.StatusOK || !strings.HasPrefix(text, want) ||
			resp.Header.Get("Content-Security-Policy") != fileSandbox ||
			resp.Header.Get("X-Content-Type-Options") != "nosniff" || strings.Contains(resp.Header.Get("Content-Type"), "html") {
			t.Errorf("%s: %d, %v\n%s", path, resp.StatusCode, resp.Header, text)
		}
	}
	for _, path := range []string{"rank/files/experiment.json", "rank/files/..%2Fp.svg", "rank/files/..%2Fsecret.csv",
		"rank/files/none.csv", "none", "rank/tables/x", "rank/tables/bad.csv", "broken"} {
		resp, text := b.ask(t, http.MethodGet, "/experiments/"+path, nil)
		if resp.StatusCode < 400 {
			t.Errorf("%s is given: %s", path, text)
		}
		wantTame(t, path, resp, text)
	}
}
