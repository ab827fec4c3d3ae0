package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMCP runs kumo from a client by the protocol's own authors, and queries it.
func TestMCP(t *testing.T) {
	t.Parallel()
	kumo, dir := kumoProgram(t), t.TempDir()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" && r.URL.Path != "/two" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<title>Page ` + r.URL.Path + `</title><a href=/two>2</a><p>` +
			strings.Repeat("A kettle of water is put on the fire. ", 20)))
	}))
	defer site.Close()
	run := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), kumo, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	run("crawl", "-q", "--delay", "0", "--limit", "1", "-o", "c", site.URL+"/two")

	start := func(args ...string) *sdk.ClientSession {
		cmd := exec.CommandContext(t.Context(), kumo, append([]string{"mcp"}, args...)...)
		cmd.Dir = dir
		c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
			&sdk.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ask := func(c *sdk.ClientSession, tool string, in map[string]any) (text string, x map[string]any) {
		res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: in})
		if err != nil {
			return err.Error(), nil
		}
		for _, part := range res.Content {
			text += part.(*sdk.TextContent).Text + "\n"
		}
		if form, err := json.Marshal(res.StructuredContent); err == nil {
			_ = json.Unmarshal(form, &x) // an error has no JSON
		}
		return text, x
	}
	c := start("c")
	if text, _ := ask(c, "read", map[string]any{"url": site.URL + "/two"}); !strings.Contains(text, "A kettle of water") {
		t.Error(text)
	}
	run("index", "c")
	if text, x := ask(c, "search", map[string]any{"words": `"kettle of" -nothing`}); x["index"] == nil ||
		!strings.Contains(text, "A kettle of water") {
		t.Errorf("the index is not searched: %s", text)
	}
	if text, _ := ask(c, "crawl", map[string]any{"url": site.URL}); !strings.Contains(text, "unknown tool") {
		t.Errorf("a crawl is made though it was not allowed: %s", text)
	}
	if err := c.Close(); err != nil {
		t.Errorf("the end of input: %v", err)
	}

	c = start("--allow-crawl=made", "c")
	if text, x := ask(c, "crawl", map[string]any{"url": site.URL}); x["pages"] != 0.0 || x["failed"] != 1.0 {
		t.Errorf("a private address is asked: %s", text)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}

	c = start("--allow-crawl=made", "--allow-private", "c")
	text, x := ask(c, "crawl", map[string]any{"url": site.URL, "depth": 1})
	name, _ := x["crawl"].(string)
	if !regexp.MustCompile(`^127\.0\.0\.1-\d+-\d+$`).MatchString(name) || x["folder"] != "made/"+name ||
		x["pages"] != 2.0 {
		t.Errorf("a crawl: %s", text)
	}
	if text, _ := ask(c, "search", map[string]any{"crawl": name, "words": "kettle"}); strings.Count(text,
		`"snippet"`) != 2 {
		t.Errorf("what was crawled is not found: %s", text)
	}
	if text, _ := ask(c, "search", map[string]any{"words": "kettle"}); !strings.Contains(text, "give a crawl: one of") {
		t.Error(text)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	run("verify", filepath.Join("made", name))

	c = start("--allow-crawl=made", "--allow-private", "--crawl-pages=1", "c")
	if text, _ := ask(c, "crawl", map[string]any{"url": site.URL, "pages": 2}); !strings.Contains(text, "from 1 to 1") {
		t.Errorf("more pages than --crawl-pages: %s", text)
	}
	if text, x := ask(c, "crawl", map[string]any{"url": site.URL}); x["pages"] != 1.0 ||
		!strings.Contains(text, `"limits":{"pages":1,"bytes":100000000,"depth":2,"seconds":60}`) {
		t.Errorf("--crawl-pages: %s", text)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	c = start("--allow-crawl=made", "--allow-private", "--crawl-size=600B", "c")
	if text, x := ask(c, "crawl", map[string]any{"url": site.URL}); x["pages"] != 1.0 ||
		x["ended"] != "limit reached: 600 bytes" {
		t.Errorf("--crawl-size: %s", text)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}

	config := "code: en\nseeds: [" + site.URL + "/]\ninterval: 0s\nlanguage: {code: en, share: 0.1, confidence: 0.1}\n"
	if err := os.WriteFile(filepath.Join(dir, "en.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	run("batch", "run", "-q", "--place", "news", "--date", "2026-11-21", "--allow-private", "en.yaml")
	c = start("news", "c")
	text, x = ask(c, "search_records", map[string]any{"words": "KETTLE two"})
	if x["looked"] != 2.0 || strings.Count(text, `"snippet"`) != 1 {
		t.Errorf("a day's records: %s", text)
	}
	text, _ = ask(c, "read_record", map[string]any{"collection": "en", "url": site.URL + "/two"})
	if !strings.Contains(text, "A kettle of water") {
		t.Errorf("a day's page: %s", text)
	}
	if text, _ := ask(c, "read", map[string]any{"url": site.URL + "/two"}); !strings.Contains(text, "A kettle of water") {
		t.Errorf("the crawl beside it: %s", text)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestMCPOverHTTP runs kumo on all addresses: requests without the token in the folder get no data. When kumo ends, a
// crawl in progress ends in order, too.
func TestMCPOverHTTP(t *testing.T) {
	t.Parallel()
	dir, made := t.TempDir(), t.TempDir()
	held := make(chan struct{}, 10)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			held <- struct{}{}
			<-r.Context().Done()
		}
		http.NotFound(w, r)
	}))
	defer site.Close()
	if out, err := exec.CommandContext(t.Context(), kumoProgram(t), "crawl", "-q", "-o", dir, site.URL+
		"/").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), kumoProgram(t), "mcp", "--listen", "0.0.0.0:0", "--allow-crawl="+made,
		"--allow-private", dir)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	log, port := "", regexp.MustCompile(`at=http://\S+:(\d+)/mcp`)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !port.MatchString(log) {
		log += lines.Text() + "\n"
	}
	at := port.FindStringSubmatch(log)
	if at == nil {
		t.Fatal(log)
	}
	note, err := os.ReadFile(filepath.Join(dir, "state", "ui.json"))
	if err != nil {
		t.Fatal(err)
	}
	var n struct{ Token string }
	if err := json.Unmarshal(note, &n); err != nil || n.Token == "" {
		t.Fatalf("%s: %v", note, err)
	}
	client := func(token string) (*sdk.ClientSession, error) {
		return sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
			&sdk.StreamableClientTransport{
				Endpoint: "http://127.0.0.1:" + at[1] + "/mcp", DisableStandaloneSSE: true,
				HTTPClient: &http.Client{Transport: withToken(token)}}, nil)
	}
	if _, err := client("wrong"); err == nil {
		t.Error("who has another token is answered")
	}
	c, err := client(n.Token)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "explain", Arguments: map[string]any{"url": site.URL +
		"/"}})
	if err != nil || !strings.Contains(res.Content[0].(*sdk.TextContent).Text, `"fate":"error"`) {
		t.Errorf("%+v: %v", res, err)
	}
	go func() { // it is notified of the end, or not
		_, _ = c.CallTool(t.Context(), &sdk.CallToolParams{Name: "crawl", Arguments: map[string]any{"url": site.URL +
			"/held"}})
	}()
	<-held
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		log += lines.Text()
	}
	if err := cmd.Wait(); err != nil || strings.Contains(log, n.Token) {
		t.Errorf("%v\n%s", err, log)
	}
	if reports, err := filepath.Glob(filepath.Join(made, "*", "report.json")); err != nil || len(reports) != 1 {
		t.Errorf("the crawl has been killed: %v\n%s", err, log)
	}
}

type withToken string

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(w))
	return http.DefaultTransport.RoundTrip(r)
}
