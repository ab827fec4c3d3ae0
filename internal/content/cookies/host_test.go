package cookies_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kumo/internal/content/cookies"
)

// A host's cookies of one node are sent by another, except secret, configured and expired ones.
func TestHostCookies(t *testing.T) {
	at := target(t, "https://w.a.example/")
	from := cookies.NewJar(cookies.Config{})
	from.Store([]string{"n=1; Domain=a.example", "m=1; Max-Age=1000", "short=1; Max-Age=10", "set=1"}, at, false, now)
	from.Store([]string{"secret=1"}, at, true, now)
	from.Store([]string{"other=1"}, target(t, "https://b.example/"), false, now)
	later := now.Add(time.Minute)
	data := from.AppendHost(nil, at.Host, 64<<10, later)

	var changed []string
	to := cookies.NewJar(cookies.Config{OnChange: func(c *cookies.Cookie) { changed = append(changed, c.Name) },
		Configured: func(c *cookies.Cookie) bool { return c.Covers(at.Host) && c.Name == "set" }})
	if err := to.ImportHost(data, at.Host, later); err != nil {
		t.Fatal(err)
	}
	if got := sent(to, at, later); got != "n=1; m=1" && got != "m=1; n=1" {
		t.Errorf("sent %q", got)
	}
	if len(changed) != 2 {
		t.Errorf("changed: %v", changed)
	}
	to.Store([]string{"m=newer"}, at, false, later)
	to.Store([]string{"n=login; Domain=a.example"}, at, true, now.Add(-time.Minute))
	if err := to.ImportHost(data, at.Host, later); err != nil {
		t.Fatal(err)
	}
	if got := sent(to, at, later); !strings.Contains(got, "m=newer") || !strings.Contains(got, "n=login") {
		t.Errorf("sent %q: a newer or secret cookie is replaced", got)
	}
	loggedIn := cookies.NewJar(cookies.Config{Private: func(host string) bool { return host == at.Host }})
	if err := loggedIn.ImportHost(data, at.Host, later); err != nil || loggedIn.Len() > 0 {
		t.Errorf("a host with a login has %d cookies of another node (%v)", loggedIn.Len(), err)
	}
}

func TestHostCookiesAreBounded(t *testing.T) {
	at := target(t, "http://w.a.example/")
	j := cookies.NewJar(cookies.Config{})
	j.Store([]string{"wide=" + strings.Repeat("v", 3000) + "; Domain=a.example", "own=" + strings.Repeat("v", 3000)}, at,
		false, now)
	data := j.AppendHost([]byte("x"), at.Host, 4000, now)
	if text := string(data); len(data) > 4001 || !strings.Contains(text, "own") || strings.Contains(text, "wide") {
		t.Errorf("%d bytes: %.60q", len(data), data)
	}
}

// A member of a mesh sends cookies that no server of the host can have set: none are added.
func TestHostCookiesOfAHostileNode(t *testing.T) {
	const host = "w.a.example"
	good := cookies.Cookie{Name: "n", Value: "1", Domain: host, HostOnly: true, Path: "/", Set: now, Created: now}
	for what, change := range map[string]func(c *cookies.Cookie){
		"another host":      func(c *cookies.Cookie) { c.Domain = "bank.example" },
		"the parent's own":  func(c *cookies.Cookie) { c.Domain = "a.example" },
		"a subdomain":       func(c *cookies.Cookie) { c.Domain = "x." + host },
		"a public suffix":   func(c *cookies.Cookie) { c.Domain, c.HostOnly = "example", false },
		"another field":     func(c *cookies.Cookie) { c.Value = "1\r\nX: y" },
		"a second cookie":   func(c *cookies.Cookie) { c.Value = "1; admin=1" },
		"a prefix":          func(c *cookies.Cookie) { c.Name = "__Host-n" },
		"a prefix, wide":    func(c *cookies.Cookie) { c.Name, c.Secure, c.HostOnly = "__Host-n", true, false },
		"a huge value":      func(c *cookies.Cookie) { c.Value = strings.Repeat("v", 5000) },
		"no path":           func(c *cookies.Cookie) { c.Path = "" },
		"no name and value": func(c *cookies.Cookie) { c.Name, c.Value = "", "" },
	} {
		bad := good
		change(&bad)
		j := cookies.NewJar(cookies.Config{})
		if err := j.ImportHost(cookies.Append(cookies.Append(nil, &good), &bad), host, now); err == nil || j.Len() > 0 {
			t.Errorf("%s: %d cookies are added (%v)", what, j.Len(), err)
		}
	}
}

// A member sends a cookie from the future, and thousands: the host can replace the one, and the others are evicted.
func TestHostCookiesWithoutEnd(t *testing.T) {
	const host = "w.a.example"
	at := target(t, "http://"+host+"/")
	c := cookies.Cookie{Name: "n", Value: "1", Domain: host, HostOnly: true, Path: "/", Created: now.Add(2000 * time.Hour),
		Set: now.Add(1000 * time.Hour), Expires: now.Add(100_000 * time.Hour)}
	j := cookies.NewJar(cookies.Config{})
	add := func(data []byte, at time.Time) {
		t.Helper()
		if err := j.ImportHost(data, host, at); err != nil {
			t.Fatal(err)
		}
	}
	add(cookies.Append(nil, &c), now)
	if got := sent(j, at, now.Add(401*24*time.Hour)); got != "" {
		t.Errorf("after 401 days, %q is sent", got)
	}
	late := c
	late.Set, late.Value = now.Add(time.Minute), "2"
	add(cookies.Append(nil, &late), now.Add(time.Minute))
	if got := sent(j, at, now.Add(time.Minute)); got != "n=2" {
		t.Errorf("sent %q: the cookie from the future is kept", got)
	}
	var many []byte
	for i := range 5000 {
		c.Name = fmt.Sprint("n", i)
		many = cookies.Append(many, &c)
	}
	if add(many, now); j.Len() != 50 {
		t.Errorf("%d cookies of a domain", j.Len())
	}
}

// A member sends cookies of a whole domain: none changes or hides what this jar sends to other hosts of the domain.
func TestHostCookiesOfAWholeDomain(t *testing.T) {
	const host = "w.a.example"
	wide := func(name string) cookies.Cookie {
		return cookies.Cookie{Name: name, Value: "shared", Domain: "a.example", Path: "/x", Set: now.Add(time.Minute),
			Created: now}
	}
	other, third := target(t, "https://v.a.example/x"), target(t, "https://login.a.example/x")
	j := cookies.NewJar(cookies.Config{
		Configured: func(c *cookies.Cookie) bool { return c.Name == "set" && c.Covers(other.Host) },
		PrivateFor: func(c *cookies.Cookie) bool { return c.Covers(third.Host) && c.Name == "login" }})
	j.Store([]string{"same=own; Domain=a.example; Path=/x", "path=own; Domain=a.example; Path=/", "host=own"}, other,
		false, now)
	j.Store([]string{"private=own"}, third, true, now)
	before := sent(j, other, now)
	var data []byte
	for _, name := range []string{"same", "path", "host", "private", "set", "login"} {
		c := wide(name)
		data = cookies.Append(data, &c)
	}
	if err := j.ImportHost(data, host, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := sent(j, other, now.Add(time.Hour)); got != before {
		t.Errorf("another host gets %q, before %q", got, before)
	}
	if got := sent(j, third, now.Add(time.Hour)); strings.Contains(got, "shared") {
		t.Errorf("a host with a login gets %q", got)
	}
	c, own := wide("new"), cookies.Cookie{Name: "host", Value: "1", Domain: host, HostOnly: true, Path: "/", Set: now,
		Created: now}
	if err := j.ImportHost(cookies.Append(cookies.Append(nil, &c), &own), host, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := sent(j, target(t, "https://w.a.example/x"), now.Add(time.Hour)); !strings.Contains(got, "new=shared") ||
		!strings.Contains(got, "host=1") {
		t.Errorf("the host gets %q: cookies that collide with none are not added", got)
	}
}
