package login

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kumo/internal/base/page"
	"kumo/internal/content/cookies"
	"kumo/internal/content/fetch"
)

// A web answers requests, and records where a form was posted.
type web struct {
	answers map[string]answer
	posted  []string
}

type answer struct {
	status         int
	location, body string
}

func (w *web) Get(_ context.Context, req fetch.Request, resp *page.Response) error {
	if req.Form != nil {
		w.posted = append(w.posted, req.URL)
		if !strings.Contains(string(req.Form), "pw=secret") {
			w.posted = append(w.posted, "without the password")
		}
	}
	a := w.answers[req.URL]
	if a.status == 0 {
		a.status = http.StatusOK
	}
	resp.Status, resp.Header, resp.Payload = a.status, http.Header{}, []byte(a.body)
	if a.location != "" {
		resp.Header.Set("Location", a.location)
	}
	return nil
}

func (w *web) Allow(string) {}

// TestPostTo tests that the password is sent to the origin of the login page, and elsewhere only if the login file
// names the host.
func TestPostTo(t *testing.T) {
	const page = "https://club.example/login"
	form := func(attributes, inside string) map[string]answer {
		return map[string]answer{page: {body: "<form method=post " + attributes + "><input name=pw type=password>" + inside +
			"</form>"}}
	}
	redirect := func(status int, to string) map[string]answer {
		all := form("action=/in", "")
		all["https://club.example/in"] = answer{status: status, location: to}
		return all
	}
	one := func(url, body string) map[string]answer { return map[string]answer{url: {body: body}} }
	bare := form("", "")[page].body
	toPage := form("action="+page, "")[page].body
	relative := form("action=in", "")[page].body
	const plain, evilBase = "http://club.example/login", "<base href=https://evil.example/>"
	moved := one("https://evil.example/", relative)
	moved[page] = answer{status: http.StatusFound, location: "https://evil.example/"}
	const named = "  post-to: [SSO.example, 'sso.example:8443']\n"
	const notNamed, noHTTP = `post-to: ["evil.example"]`, "is https"
	for name, c := range map[string]struct {
		url, more string
		answers   map[string]answer
		posted    string // URLs, separated by a space
		err       string
	}{
		"no action":           {page, "", form("", ""), page, ""},
		"relative action":     {page, "", form("action=in?x", ""), "https://club.example/in?x", ""},
		"own origin":          {page, "", form("action=https://club.example:443/in", ""), "https://club.example/in", ""},
		"another host":        {page, "", form("action=https://evil.example/in", ""), "", notNamed},
		"scheme-relative":     {page, "", form("action=//evil.example/in", ""), "", notNamed},
		"backslashes":         {page, "", form(`action='\\evil.example\in'`, ""), "", notNamed},
		"user":                {page, "", form("action=https://club.example@evil.example/", ""), "", notNamed},
		"another port":        {page, "", form("action=https://club.example:8443/in", ""), "", "club.example:8443"},
		"subdomain":           {page, "", form("action=https://x.club.example/in", ""), "", "x.club.example"},
		"over http":           {page, "", form("action=http://club.example/in", ""), "", noHTTP},
		"script":              {page, "", form("action=javascript:x", ""), "", "not an http(s) URL"},
		"named":               {page, named, form("action=https://sso.example/in", ""), "https://sso.example/in", ""},
		"named, with port":    {page, named, form("action=https://sso.example:8443/", ""), "https://sso.example:8443/", ""},
		"named, another port": {page, named, form("action=https://sso.example:8444/", ""), "", "sso.example:8444"},
		"named, over http":    {page, named, form("action=http://sso.example/in", ""), "", noHTTP},
		"button":              {page, "", form("action=/in", "<button formaction=/b>"), "https://club.example/b", ""},
		"button elsewhere":    {page, "", form("", "<button formaction=//evil.example/>"), "", notNamed},
		"input elsewhere":     {page, "", form("", "<input type=image formaction=//evil.example/>"), "", notNamed},
		"second button": {page, "", form("action=/in", "<button></button><button formaction=/b>"),
			"https://club.example/in", ""},
		"button that gets":   {page, "", form("action=/in", "<button formmethod=get>"), "", "method is not POST"},
		"repeated":           {page, "", redirect(307, "/in2"), "https://club.example/in https://club.example/in2", ""},
		"repeated elsewhere": {page, "", redirect(307, "https://evil.example/"), "https://club.example/in", notNamed},
		"moved elsewhere":    {page, "", redirect(308, "https://evil.example/"), "https://club.example/in", notNamed},
		"moved to http":      {page, "", redirect(308, "http://club.example/"), "https://club.example/in", noHTTP},
		"moved to a named host": {page, named, redirect(308, "https://sso.example/"),
			"https://club.example/in https://sso.example/", ""},
		"other redirect":         {page, "", redirect(303, "https://evil.example/"), "https://club.example/in", ""},
		"http":                   {plain, "", one(plain, bare), plain, ""},
		"http to https":          {plain, "", one(plain, toPage), page, ""},
		"page on another origin": {page, "", moved, "", notNamed},
		"base": {page, "", one(page, "<base href=/a/><base href=/b/>"+relative),
			"https://club.example/a/in", ""},
		"base elsewhere":      {page, "", one(page, evilBase+relative), "", notNamed},
		"base without action": {page, "", one(page, evilBase+bare), page, ""},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "login.yaml")
			text := "- url: " + c.url + "\n  attempts: 1\n  fields: {pw: secret}\n" + c.more
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := Load(file)
			if err != nil {
				t.Fatal(err)
			}
			w := &web{answers: c.answers}
			if c.more != "" && !cfg.Private("sso.example") {
				t.Error("cookies of a host that gets the form are not private")
			}
			s, err := New(cfg, w, cookies.NewJar(cookies.Config{}))
			if err != nil {
				t.Fatal(err)
			}
			err = s.LogInAll(t.Context())
			if got := strings.Join(w.posted, " "); got != c.posted {
				t.Errorf("posted to %q, want %q", got, c.posted)
			}
			if c.err == "" && err != nil && !strings.Contains(err.Error(), "form again") ||
				c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("error is %v, want %q", err, c.err)
			}
		})
	}
}

// A cookie is private if it may be sent to any host with a login.
func TestCookiesForHostsWithALogin(t *testing.T) {
	cfg := &Config{Sites: []Site{{Hosts: []string{"w.a.example"}, PostTo: []string{"sso.b.example:8443"}}}}
	for c, want := range map[cookies.Cookie]bool{
		{Domain: "w.a.example", HostOnly: true}:   true,
		{Domain: "a.example"}:                     true,
		{Domain: "a.example", HostOnly: true}:     false,
		{Domain: "x.w.a.example"}:                 false,
		{Domain: "b.example"}:                     true,
		{Domain: "sso.b.example", HostOnly: true}: true,
		{Domain: "c.example"}:                     false,
	} {
		if got := cfg.PrivateFor(&c); got != want {
			t.Errorf("%s, host only: %v: private: %v, want %v", c.Domain, c.HostOnly, got, want)
		}
	}
}
