package wire

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kumo/internal/base/page"
	"kumo/internal/content/login"
)

// A club shows its pages to logged-in clients, for a number of requests. Other requests are redirected to the form.
type club struct {
	*site
	mu       sync.Mutex
	lasts    int // requests per session
	left     int
	session  int
	token    int
	logins   int
	shown    map[string]int // pages, to members
	password string
}

const clubPages = 20

func newClub(t *testing.T, lasts int) *club {
	c := &club{lasts: lasts, shown: map[string]int{}, password: "pass-Secret"}
	pages := map[string]http.HandlerFunc{"h.test/login": c.login, "h.test/open": html("open to all")}
	for i := range clubPages {
		pages[fmt.Sprintf("h.test/%d", i)] = c.page
	}
	c.site = newSite(t, pages)
	return c
}

func (c *club) login(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Method != http.MethodPost {
		c.token++
		http.SetCookie(w, &http.Cookie{Name: "form", Value: fmt.Sprintf("form-Secret%d", c.token)})
		html(fmt.Sprintf(`<form action="/search"><input name=q></form><form method=post><input type=hidden name=csrf value=%d>
			<input name=user><input type=password name=pw><input type=submit name=go value=1></form>`, c.token))(w, r)
		return
	}
	form, err := r.Cookie("form")
	if err != nil || form.Value != fmt.Sprintf("form-Secret%d", c.token) ||
		r.PostFormValue("csrf") != fmt.Sprint(c.token) ||
		r.PostFormValue("user") != "me" || r.PostFormValue("pw") != c.password || r.PostFormValue("go") != "" {
		http.Redirect(w, r, "/login", http.StatusSeeOther)
		return
	}
	c.logins++
	c.session++
	c.left = c.lasts
	http.SetCookie(w, &http.Cookie{Name: "session", Value: fmt.Sprintf("session-Secret%d", c.session), Path: "/"})
	http.Redirect(w, r, "/0", http.StatusSeeOther)
}

func (c *club) page(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	got, err := r.Cookie("session")
	if err != nil || got.Value != fmt.Sprintf("session-Secret%d", c.session) || c.left == 0 {
		http.Redirect(w, r, "/login?next="+r.URL.Path, http.StatusFound)
		return
	}
	c.left--
	c.shown[r.URL.Path]++
	var n int
	_, _ = fmt.Sscanf(r.URL.Path, "/%d", &n)
	http.SetCookie(w, &http.Cookie{Name: "last", Value: fmt.Sprintf("last-Secret%d", n)})
	html(fmt.Sprintf(`for members <a href="/%d">next</a>`, n+1))(w, r)
}

func (c *club) file(t *testing.T, more string) *login.Config {
	name := filepath.Join(t.TempDir(), "login.yaml")
	text := fmt.Sprintf("- url: %s\n  fields:\n    user: me\n    pw: {env: CLUB_PASSWORD}\n%s", c.url("h.test/login"),
		more)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := login.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// A login expires during a crawl, repeatedly. Every page is fetched as a logged-in client, and the folder contains no
// secrets.
func TestCrawlOfWhatIsBehindALogin(t *testing.T) {
	t.Setenv("CLUB_PASSWORD", "pass-Secret")
	c := newClub(t, 6)
	j := c.job(t, "h.test/0")
	j.Logins = c.file(t, "  success: {text: for members, cookie: session, url: /0}\n")
	mustRun(t, j)
	all := lines(t, j.Dir, "pages.jsonl")
	if len(all) != clubPages+1 { // the last link has no target
		t.Errorf("%d pages", len(all))
	}
	for _, line := range all {
		if url := line["url"].(string); line["status"] != 200.0 && !strings.HasSuffix(url, fmt.Sprint("/", clubPages)) {
			t.Errorf("%s: status %v", url, line["status"])
		}
	}
	for i := range clubPages {
		if n := c.shown[fmt.Sprint("/", i)]; n != 1 && i != 0 { // the login itself fetches its target, too
			t.Errorf("/%d was shown %d times", i, n)
		}
	}
	if c.logins != 4 {
		t.Errorf("%d logins", c.logins)
	}
	wantNoSecrets(t, j.Dir)
}

// wantNoSecrets checks all files of a folder.
func wantNoSecrets(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, ".gz") {
			zip, err := gzip.NewReader(bytes.NewReader(data))
			if err != nil {
				return err
			}
			if data, err = io.ReadAll(zip); err != nil {
				return err
			}
			if strings.Contains(name, ".warc.") && !bytes.Contains(data, []byte("session=REDACTED")) {
				t.Errorf("%s does not show that there is a cookie", name)
			}
		}
		if i := bytes.Index(data, []byte("-Secret")); i >= 0 {
			t.Errorf("%s: %q", name, data[max(0, i-40):i+20])
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// If the login fails, nothing is fetched, and the error has the reason without the password.
func TestLoginThatFails(t *testing.T) {
	t.Setenv("CLUB_PASSWORD", "wrong-Secret")
	c := newClub(t, 6)
	j := c.job(t, "h.test/0")
	j.Logins = c.file(t, "  attempts: 2\n")
	err := runOnly(t, j)
	if err == nil || !strings.Contains(err.Error(), "log in at "+c.url("h.test/login")) ||
		!strings.Contains(err.Error(), "contains the form again") || strings.Contains(err.Error(), "Secret") {
		t.Errorf("error %v", err)
	}
	c.wantAsked(t, "h.test/login", "h.test/login", "h.test/login", "h.test/login", "h.test/login", "h.test/login")
}

// A login that is rejected later makes the host abandoned; its URLs remain for the next run.
func TestLoginThatFailsLater(t *testing.T) {
	t.Setenv("CLUB_PASSWORD", "pass-Secret")
	c := newClub(t, 6)
	j := c.job(t, "h.test/0")
	j.Logins = c.file(t, "")
	gave := ""
	j.Listener.Abandoned = func(origin, why string) { gave = origin + " " + why }
	j.Listener.Visited = func(r *page.Record) {
		if strings.HasSuffix(r.URL, "/3") {
			c.mu.Lock()
			c.password = "another"
			c.mu.Unlock()
		}
	}
	mustRun(t, j)
	if !strings.Contains(gave, "login: log in at") || c.shown["/4"] != 1 || c.shown["/5"] != 0 {
		t.Errorf("gave up: %q; shown %v", gave, c.shown)
	}
	j.Listener.Visited = nil
	c.password = "pass-Secret"
	mustRun(t, j)
	if n := len(lines(t, j.Dir, "pages.jsonl")); n != clubPages+1 {
		t.Errorf("%d pages", n)
	}
}

// A page that even members may not see is excluded, without further logins.
func TestPageForNobody(t *testing.T) {
	t.Setenv("CLUB_PASSWORD", "pass-Secret")
	c := newClub(t, 1000)
	j := c.job(t, "h.test/0")
	j.Seeds = append(j.Seeds, c.url("h.test/open"), c.url("h.test/vault"))
	j.Logins = c.file(t, "  expired: {status: [404], text: open to all}\n")
	mustRun(t, j)
	left := lines(t, j.Dir, "skipped.jsonl")
	if len(left) != 3 || left[0]["rule"] != "login" {
		t.Errorf("left out: %v", left)
	}
	if c.logins > 10 {
		t.Errorf("%d logins", c.logins)
	}
}
