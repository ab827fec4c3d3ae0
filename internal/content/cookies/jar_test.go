package cookies_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/publicsuffix"

	"kumo/internal/content/cookies"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func target(t testing.TB, raw string) cookies.Target {
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return cookies.Target{Secure: u.Scheme == "https", Host: u.Hostname(), Path: u.RequestURI()}
}

func sent(j *cookies.Jar, to cookies.Target, at time.Time) string {
	var pairs []string
	for _, c := range j.Append(nil, to, at) {
		pairs = append(pairs, c.Name+"="+c.Value)
	}
	return strings.Join(pairs, "; ")
}

func TestWhatIsSent(t *testing.T) {
	for _, c := range []struct{ from, field, to, want string }{
		{"http://a.example/x/y", "n=1", "http://a.example/x/", "n=1"},
		{"http://a.example/x/y", "n=1", "http://a.example/x", "n=1"},
		{"http://a.example/x/y", "n=1", "http://a.example/xy", ""},
		{"http://a.example/x/y", "n=1; Path=/", "http://a.example/?q", "n=1"},
		{"http://a.example/", "n=1", "http://b.a.example/", ""},
		{"http://b.a.example/", "n=1; Domain=a.example", "http://c.a.example/", "n=1"},
		{"http://b.a.example/", "n=1; Domain=.a.example", "http://a.example/", "n=1"},
		{"http://b.a.example/", "n=1; Domain=c.a.example", "http://c.a.example/", ""},
		{"http://b.co.uk/", "n=1; Domain=co.uk", "http://c.co.uk/", ""},
		{"http://b.co.uk/", "n=1; Domain=uk", "http://b.co.uk/", ""},
		{"http://x.github.io/", "n=1; Domain=github.io", "http://x.github.io/", ""},
		{"http://localhost/", "n=1; Domain=localhost", "http://localhost/", "n=1"},
		{"http://127.0.0.1/", "n=1; Domain=127.0.0.1", "http://127.0.0.1/", "n=1"},
		{"http://127.0.0.1/", "n=1; Domain=0.0.1", "http://127.0.0.1/", ""},
		{"https://a.example/", "n=1; Secure", "http://a.example/", ""},
		{"https://a.example/", "n=1; Secure", "https://a.example/", "n=1"},
		{"http://a.example/", "n=1; Secure", "https://a.example/", ""},
		{"https://a.example/", "__Secure-n=1", "https://a.example/", ""},
		{"https://a.example/", "__Secure-n=1; Secure", "https://a.example/", "__Secure-n=1"},
		{"https://a.example/", "__Host-n=1; Secure; Path=/", "https://a.example/", "__Host-n=1"},
		{"https://a.example/", "__Host-n=1; Secure", "https://a.example/", ""},
		{"https://a.example/", "__host-n=1; Secure; Path=/; Domain=a.example", "https://a.example/", ""},
		{"https://a.example/", "=__Host-n=1; Secure; Path=/", "https://a.example/", ""},
		{"http://a.example/", "n=1; Max-Age=0", "http://a.example/", ""},
		{"http://a.example/", "n=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "http://a.example/", "n=1"},
		{"http://a.example/", "n=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "http://a.example/", ""},
		{"http://a.example/", "n=1; Expires=Sat, 07-Mar-26 00:00:00 GMT", "http://a.example/", "n=1"},
		{"http://a.example/", "n=1; Expires=nonsense", "http://a.example/", "n=1"},
		{"http://a.example/", "n=a\x01b", "http://a.example/", ""},
		{"http://a.example/", "n=" + strings.Repeat("v", 5000), "http://a.example/", ""},
		{"http://a.example/", ` n = "a b" ;HttpOnly;SameSite=Strict`, "http://a.example/", `n="a b"`},
	} {
		j := cookies.NewJar(cookies.Config{})
		j.Store([]string{c.field}, target(t, c.from), false, now)
		if got := sent(j, target(t, c.to), now); got != c.want {
			t.Errorf("%s, set by %s: %s is sent %q, want %q", c.field, c.from, c.to, got, c.want)
		}
	}
}

// A cookie set over http does not replace a cookie set over https: otherwise an attacker who modifies the traffic could
// log a crawl in with another account.
func TestSecureCookieStays(t *testing.T) {
	j := cookies.NewJar(cookies.Config{})
	j.Store([]string{"n=safe; Secure; Domain=a.example; Path=/"}, target(t, "https://a.example/"), false, now)
	j.Store([]string{"n=evil; Path=/"}, target(t, "http://www.a.example/"), false, now)
	if got := sent(j, target(t, "https://www.a.example/"), now); got != "n=safe" {
		t.Errorf("sent %q", got)
	}
}

func TestBoundOfADomain(t *testing.T) {
	j := cookies.NewJar(cookies.Config{PerDomain: 3})
	at := target(t, "https://a.example/")
	for i, field := range []string{"old=1", "secure=1; Secure", "used=1; Path=/p", "new=1"} {
		j.Append(nil, target(t, "https://a.example/p"), now.Add(time.Duration(i)*time.Second-time.Millisecond))
		j.Store([]string{field}, at, false, now.Add(time.Duration(i)*time.Second))
	}
	if j.Len() != 3 || j.Evicted() != 1 {
		t.Errorf("%d cookies, %d evicted", j.Len(), j.Evicted())
	}
	if got := sent(j, target(t, "https://a.example/p"), now); !strings.Contains(got, "secure=1") ||
		strings.Contains(got, "old=1") {
		t.Errorf("sent %q", got)
	}
}

func TestBoundOfAll(t *testing.T) {
	j := cookies.NewJar(cookies.Config{Bytes: 100_000})
	for i := range 10_000 {
		j.Store([]string{"n=" + strings.Repeat("v", i%500)}, target(t, fmt.Sprintf("http://h%d.example/", i)), false, now)
		j.Append(nil, target(t, "http://h0.example/"), now) // frequently used
	}
	if j.Len() < 50 || j.Len() > 500 || j.Len()+j.Evicted() != 10_000 {
		t.Errorf("%d cookies, %d evicted", j.Len(), j.Evicted())
	}
	if sent(j, target(t, "http://h0.example/"), now) == "" {
		t.Error("the domain that was asked for last is gone")
	}
}

func TestPrivateCookiesStayPrivate(t *testing.T) {
	var told []string
	j := cookies.NewJar(cookies.Config{OnChange: func(c *cookies.Cookie) { told = append(told, c.Name) },
		Private: func(host string) bool { return host == "in.example" }})
	keep := func(from, field string) bool { return j.Store([]string{field}, target(t, from), false, now) }
	if !keep("http://in.example/", "session=1") || keep("http://out.example/", "n=1") {
		t.Error("what a host sets is not told apart")
	}
	j.Store([]string{"wide=1; Domain=b.example"}, target(t, "http://a.b.example/"), true, now)
	if !keep("http://c.b.example/", "wide=2; Domain=b.example") {
		t.Error("a secret that another host renews is one no more")
	}
	if fmt.Sprint(told) != "[n]" {
		t.Errorf("told of %v", told)
	}
	if all := j.AppendAll(nil); strings.Contains(string(all), "session") || strings.Contains(string(all), "wide") {
		t.Errorf("written: %q", all)
	}
	if len(j.AppendForHost(nil, "in.example")) > 0 {
		t.Error("it goes to other nodes")
	}
}

func TestWhatIsToldAgain(t *testing.T) {
	told := 0
	j := cookies.NewJar(cookies.Config{OnChange: func(*cookies.Cookie) { told++ }})
	at := target(t, "http://a.example/")
	stamp := func() uint64 { return j.Revision(at, now) }
	keep := func(field string, after time.Duration) { j.Store([]string{field}, at, false, now.Add(after)) }
	keep("n=1; Max-Age=1000", 0)
	first := stamp()
	keep("n=1; Max-Age=1000", 10*time.Second)
	if told != 1 || stamp() != first || first == 0 {
		t.Errorf("told %d times, stamp %d then %d", told, first, stamp())
	}
	keep("n=1; Max-Age=1000", 200*time.Second)
	keep("n=2; Max-Age=1000", 201*time.Second)
	if told != 3 || stamp() <= first {
		t.Errorf("told %d times, stamp %d then %d", told, first, stamp())
	}
	keep("n=2; Max-Age=0", 202*time.Second)
	keep("n=2; Max-Age=0", 203*time.Second)
	if told != 4 || j.Len() != 0 {
		t.Errorf("told %d times, %d cookies", told, j.Len())
	}
}

// The standard library's jar is the oracle: cookies set at random are sent to the same targets in the same order. It
// differs where it is older than RFC 6265bis: prefixes, Secure over http, and replacing host-only cookies.
func TestAgainstStandardJar(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	for round := range uint64(300) {
		compareJars(t, rand.New(rand.NewPCG(seed, round)))
	}
}

func FuzzAgainstStandardJar(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { compareJars(t, rand.New(rand.NewPCG(a, b))) })
}

func compareJars(t *testing.T, r *rand.Rand) {
	ours := cookies.NewJar(cookies.Config{PerDomain: 1000})
	theirs, err := cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List})
	if err != nil {
		t.Fatal(err)
	}
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	at := func(scheme string) string {
		return scheme + "://" + pick("a.example", "b.a.example", "c.b.a.example", "example", "x.co.uk", "co.uk", "y.x.co.uk",
			"127.0.0.1", "localhost", "ba.example", "k.github.io") + pick("/", "/p", "/p/", "/p/q", "/pq", "/p?q=/x", "/p/q/r")
	}
	var history []string
	for range 60 {
		from := at("https")
		field := pick("a", "b", "c") + "=" + pick("1", "2", "3", "")
		for range r.IntN(4) {
			field += pick("; Path=/", "; path=/p", "; Path=/p/", "; Path=p", "; Domain=a.example", "; Domain=.a.example",
				"; domain=B.A.example", "; Domain=co.uk", "; Domain=x.co.uk", "; Domain=127.0.0.1", "; Domain=github.io",
				"; Domain=k.github.io", "; Secure", "; HttpOnly", "; Max-Age=0", "; Max-Age=100", "; Max-Age=-5",
				"; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "; Expires=Fri, 01 Jan 2100 00:00:00 GMT", "; Domain=localhost")
		}
		if c, _ := cookies.Parse(field, target(t, from), now); !c.HostOnly {
			field = "wide-" + field // it would replace a host-only cookie there
		}
		history = append(history, from+" "+field)
		u, _ := url.Parse(from)
		if parsed, err := http.ParseSetCookie(field); err == nil {
			theirs.SetCookies(u, []*http.Cookie{parsed})
			ours.Store([]string{field}, target(t, from), false, time.Now())
		}
		to := at(pick("http", "https"))
		if strings.HasPrefix(to, "http://localhost") || strings.HasPrefix(to, "http://127.") {
			continue // these count as secure there
		}
		v, _ := url.Parse(to)
		var pairs []string
		for _, c := range theirs.Cookies(v) {
			pairs = append(pairs, c.Name+"="+c.Value)
		}
		got, want := sent(ours, target(t, to), time.Now()), strings.Join(pairs, "; ")
		if got != want {
			t.Fatalf("%s\n%s is sent %q, want %q", strings.Join(history, "\n"), to, got, want)
		}
	}
}

func TestDates(t *testing.T) {
	for field, want := range map[string]string{
		"Wed, 09 Jun 2027 10:18:14 GMT":  "2027-06-09 10:18:14",
		"Wednesday, 09-Jun-27 10:18:14":  "2027-06-09 10:18:14",
		"Wed Jun  9 10:18:14 2027":       "2027-06-09 10:18:14",
		"9 june 27 1:2:3 whatever":       "2027-06-09 01:02:03",
		"Mon, 31 Feb 2027 10:18:14 GMT":  "",
		"Wed, 09 Jun 2027 24:18:14 GMT":  "",
		"Wed, 09 Jun 1500 10:18:14 GMT":  "",
		"10:18:14 GMT":                   "",
		"Wed, 09 Jun 20270 10:18:14 GMT": "",
	} {
		c, ok := cookies.Parse("n=1; Expires="+field, target(t, "http://a.example/"), now.AddDate(1, 2, 0))
		got := ""
		if ok && !c.Expires.IsZero() {
			got = c.Expires.Format(time.DateTime)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", field, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"n=1", "__Host-a=b; Secure; Path=/",
		"a=b; Domain=.x.example; Expires=Wed, 09 Jun 2027 10:18:14 GMT",
		"=; Max-Age=99999999999999999999", "; =; ;", "x"} {
		f.Add(s, "w.x.example", "/p/q")
	}
	f.Fuzz(func(t *testing.T, field, host, path string) {
		from := cookies.Target{Secure: true, Host: host, Path: "/" + path}
		c, ok := cookies.Parse(field, from, now)
		if !ok {
			return
		}
		if !c.Covers(host) || c.Expires.After(now.Add(401*24*time.Hour)) {
			t.Fatalf("%q from %q: %+v", field, host, c)
		}
		d, rest, whole := cookies.Read(cookies.Append(nil, &c))
		if len(host) < 200 && !strings.ContainsAny(host+path, "\x00;") && whole {
			d.Expires, d.Created, d.Set, c.Expires, c.Created, c.Set = now, now, now, now, now, now
			if d != c || len(rest) > 0 {
				t.Fatalf("%+v becomes %+v", c, d)
			}
		}
	})
}

func FuzzRead(f *testing.F) {
	c, _ := cookies.Parse("n=1; Max-Age=10", cookies.Target{Host: "a.example", Path: "/"}, now)
	f.Add(cookies.Append(nil, &c))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, _, ok := cookies.Read(b)
		if !ok {
			return
		}
		j := cookies.NewJar(cookies.Config{})
		j.Import(c)
		if got := sent(j, cookies.Target{Secure: true, Host: c.Domain, Path: c.Path}, now); strings.ContainsAny(got, "\r\n") {
			t.Fatalf("sent %q", got)
		}
	})
}

func TestJarOfAnotherProcess(t *testing.T) {
	j := cookies.NewJar(cookies.Config{})
	at := target(t, "https://w.a.example/p")
	j.Store([]string{"a=1", "b=2; Domain=a.example; Path=/; Secure; Max-Age=100", "c=3; Path=/p"}, at, false, now)
	k := cookies.NewJar(cookies.Config{})
	if !k.ImportAll(j.AppendAll(nil)) || sent(k, at, now) != sent(j, at, now) || k.Len() != 3 {
		t.Errorf("sent %q, then %q", sent(j, at, now), sent(k, at, now))
	}
	k.Store([]string{"a=4"}, at, false, now.Add(time.Second))
	k.ImportAll(j.AppendAll(nil)) // older cookies change nothing
	if !strings.Contains(sent(k, at, now), "a=4") {
		t.Errorf("sent %q", sent(k, at, now))
	}
	if k.ImportAll(j.AppendAll(nil)[:10]) {
		t.Error("damage is not told")
	}
}

// A request without cookies does not allocate.
func TestNoAllocationWithoutCookies(t *testing.T) {
	empty, other := cookies.NewJar(cookies.Config{}), cookies.NewJar(cookies.Config{})
	other.Store([]string{"a=1"}, target(t, "https://w.b.example/p"), false, now)
	at := target(t, "https://w.a.example/p?q")
	for _, j := range []*cookies.Jar{nil, empty, other} {
		if n := testing.AllocsPerRun(100, func() { j.Append(nil, at, now) }); n > 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for name, n := range map[string]int{"empty": 0, "others": 1000} {
		b.Run(name, func(b *testing.B) {
			j := cookies.NewJar(cookies.Config{})
			for i := range n {
				j.Store([]string{"n=1"}, target(b, fmt.Sprintf("http://h%d.example/", i)), false, now)
			}
			at := target(b, "http://www.a.example/p")
			b.ReportAllocs()
			for b.Loop() {
				j.Append(nil, at, now)
			}
		})
	}
}
