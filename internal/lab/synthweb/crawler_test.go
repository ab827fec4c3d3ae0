package synthweb

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
)

// A walker is the simplest correct crawler: one request at a time, and a tree of each page. It shares no code with the
// package.
type walker struct {
	t      *testing.T
	client *http.Client
	scheme string
	embeds bool
	polite bool
	robots map[string][]rule
	found  map[string]int // by URL: status of the last answer, 0 for none
	todo   []string
}

type rule struct {
	allow   bool
	pattern string
}

func newClient(s *Server) *http.Client {
	dial := func(ctx context.Context, network, hostport string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(hostport)
		addr := s.Addr(host)
		if !addr.IsValid() {
			return nil, &net.DNSError{Name: host, Err: "no such host", IsNotFound: true}
		}
		return new(net.Dialer).DialContext(ctx, network, addr.String())
	}
	return &http.Client{
		Timeout: 3 * time.Second,
		Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 1, ResponseHeaderTimeout: time.Second,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func walk(t *testing.T, s *Server, embeds bool) *walker {
	w := &walker{t: t, client: newClient(s), scheme: s.web.cfg.scheme(), embeds: embeds, polite: true,
		robots: map[string][]rule{}, found: map[string]int{}}
	defer w.client.CloseIdleConnections()
	for _, seed := range s.SeedURLs() {
		w.add(seed)
	}
	for len(w.todo) > 0 {
		next := w.todo[0]
		w.todo = w.todo[1:]
		w.visit(next)
	}
	return w
}

func (w *walker) add(rawURL string) {
	u, err := url.Parse(rawURL)
	if err != nil {
		w.t.Errorf("a link is no URL: %v", err)
		return
	}
	u.Fragment, u.RawFragment = "", ""
	if _, known := w.found[u.String()]; known || u.Scheme != w.scheme || strings.HasPrefix(u.Path, "/calendar/") {
		return
	}
	w.found[u.String()] = 0
	if w.allowed(u) {
		w.todo = append(w.todo, u.String())
	} else {
		delete(w.found, u.String())
	}
}

// allowed implements RFC 9309 for the rules that begin each group for "kumo" or "*", with * and $.
func (w *walker) allowed(u *url.URL) bool {
	rules, ok := w.robots[u.Host]
	if !ok {
		rules = w.readRobots(u.Host)
		w.robots[u.Host] = rules
	}
	best := rule{allow: true}
	for _, r := range rules {
		if matches(r.pattern, u.RequestURI()) && len(r.pattern) > len(best.pattern) {
			best = r
		}
	}
	return best.allow
}

func matches(pattern, path string) bool {
	if rest, ok := strings.CutPrefix(pattern, "/*"); ok {
		return strings.HasSuffix(path, strings.TrimSuffix(rest, "$"))
	}
	return strings.HasPrefix(path, pattern)
}

func (w *walker) readRobots(host string) (rules []rule) {
	status, _, body := w.get(w.scheme + "://" + host + "/robots.txt")
	if status == 0 || status >= 500 {
		return []rule{{false, "/"}}
	}
	if status >= 400 {
		return nil
	}
	mine, inAgents := false, false
	for line := range strings.Lines(string(body)) {
		line, _, _ = strings.Cut(line, "#")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch name = strings.ToLower(strings.TrimSpace(name)); {
		case name == "user-agent":
			mine = mine && inAgents || value == "*"
			inAgents = true
		case name == "allow" && mine, name == "disallow" && mine:
			rules = append(rules, rule{name == "allow", value})
		}
		inAgents = inAgents && name == "user-agent"
	}
	return rules
}

// get fetches a URL, and retries after 429 and 503 when Retry-After allows it.
func (w *walker) get(rawURL string) (int, http.Header, []byte) {
	for range 5 {
		req, _ := http.NewRequest("GET", rawURL, nil)
		req.Header.Set("User-Agent", "kumo-test")
		resp, err := w.client.Do(req)
		if err != nil {
			return 0, nil, nil
		}
		body, _ := io.ReadAll(resp.Body) // a truncated body counts as far as it arrived
		resp.Body.Close()
		if resp.StatusCode != 429 && resp.StatusCode != 503 {
			return resp.StatusCode, resp.Header, body
		}
		wait, err := time.ParseDuration(cmp.Or(resp.Header.Get("Retry-After"), "x") + "s")
		if err != nil {
			w.t.Errorf("%s: %d with Retry-After %q", rawURL, resp.StatusCode, resp.Header.Get("Retry-After"))
		}
		if w.polite {
			<-time.After(wait)
		}
	}
	return 0, nil, nil
}

func (w *walker) visit(rawURL string) {
	status, header, body := w.get(rawURL)
	w.found[rawURL] = status
	if status == 0 {
		delete(w.found, rawURL)
		return
	}
	base, _ := url.Parse(rawURL)
	if status/100 == 3 {
		w.resolve(base, header.Get("Location"))
	}
	if status == 200 && strings.HasPrefix(header.Get("Content-Type"), "text/html") {
		w.read(base, body, header.Get("Content-Type"))
	}
}

func (w *walker) read(base *url.URL, body []byte, contentType string) {
	text, err := charset.NewReader(bytes.NewReader(body), contentType)
	if err != nil {
		w.t.Fatal(err)
	}
	tree, err := html.Parse(text)
	if err != nil {
		w.t.Fatal(err)
	}
	attr := func(n *html.Node, name string) string {
		for _, a := range n.Attr {
			if a.Key == name {
				return a.Val
			}
		}
		return ""
	}
	for n := range tree.Descendants() {
		switch {
		case n.Type != html.ElementNode:
		case n.Data == "base":
			base, _ = base.Parse(attr(n, "href"))
		case n.Data == "a", n.Data == "area":
			w.resolve(base, attr(n, "href"))
		case n.Data == "iframe":
			w.resolve(base, attr(n, "src"))
		case n.Data == "meta" && attr(n, "http-equiv") == "refresh":
			_, to, _ := strings.Cut(attr(n, "content"), "url=")
			w.resolve(base, to)
		case w.embeds && (n.Data == "img" || n.Data == "script"):
			w.resolve(base, attr(n, "src"))
		case w.embeds && n.Data == "link":
			w.resolve(base, attr(n, "href"))
		}
	}
}

func (w *walker) resolve(base *url.URL, ref string) {
	ref = strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' || c == '\r' {
			return -1
		}
		return c
	}, strings.TrimSpace(ref))
	if ref == "" {
		return
	}
	u, err := base.Parse(ref)
	if err != nil {
		w.t.Errorf("on %s: %v", base, err)
		return
	}
	w.add(u.String())
}
