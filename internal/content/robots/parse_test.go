package robots

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAllowed checks the verdict and the line that decided.
func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		why, robots, path string
		ok                bool
		rule              string
	}{
		{"nothing said", "", "/x", true, ""},
		{"empty Disallow", "User-agent: *\nDisallow:\n", "/x", true, ""},
		{"the line as written", "User-agent: *\n  disallow :/x/ # ours\n", "/x/y", false, "disallow :/x/"},
		{"not the folder itself", "User-agent: *\nDisallow: /x/\n", "/x", true, ""},
		{"empty path", "User-agent: *\nDisallow: /\n", "", false, "Disallow: /"},
		{"query without path", "User-agent: *\nDisallow: /?a\n", "?ab", false, "Disallow: /?a"},
		{"robots.txt itself", "User-agent: *\nDisallow: /\n", "/robots.txt", true, ""},
		{"robots.txt elsewhere", "User-agent: *\nDisallow: /\n", "/a/robots.txt", false, "Disallow: /"},

		{"longest wins", "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/c\n", "/a/b/x", true, "Allow: /a/b"},
		{"allow wins a tie", "User-agent: *\nDisallow: /a\nAllow: /a\n", "/a", true, "Allow: /a"},
		{"first of equals is named", "User-agent: *\nDisallow: /*a\nDisallow: /ba\n", "/ba", false, "Disallow: /*a"},

		{"star", "User-agent: *\nDisallow: /*/b*.php\n", "/a/bc.php?d", false, "Disallow: /*/b*.php"},
		{"end", "User-agent: *\nDisallow: /*.php$\n", "/a.php", false, "Disallow: /*.php$"},
		{"not the end", "User-agent: *\nDisallow: /*.php$\n", "/a.php?b", true, ""},
		{"dollar in the middle", "User-agent: *\nDisallow: /a$b\n", "/a$b", false, "Disallow: /a$b"},
		{"dollar escaped", "User-agent: *\nDisallow: /a%24\n", "/a$b", false, "Disallow: /a%24"},
		{"star escaped", "User-agent: *\nDisallow: /a%2Ab\n", "/a*b", false, "Disallow: /a%2Ab"},
		{"star escaped is no wildcard", "User-agent: *\nDisallow: /a%2ab\n", "/axb", true, ""},
		{"leading star", "User-agent: *\nDisallow: *.pdf\n", "/a.pdf", false, "Disallow: *.pdf"},
		{"no leading slash", "User-agent: *\nDisallow: a\n", "/a", true, ""},

		{"UTF-8 octets", "User-agent: *\nDisallow: /é\n", "/%C3%A9", false, "Disallow: /é"},
		{"lower hex in the rule", "User-agent: *\nDisallow: /%c3%a9\n", "/%C3%A9", false, "Disallow: /%c3%a9"},
		{"lower hex in the URL", "User-agent: *\nDisallow: /%C3%A9\n", "/%c3%a9", false, "Disallow: /%C3%A9"},
		{"tilde plain", "User-agent: *\nDisallow: /~a\n", "/%7ea", false, "Disallow: /~a"},
		{"tilde escaped", "User-agent: *\nDisallow: /%7Ea\n", "/~a", false, "Disallow: /%7Ea"},
		{"space", "User-agent: *\nDisallow: /a b\n", "/a%20b", false, "Disallow: /a b"},
		{"space in the URL", "User-agent: *\nDisallow: /a%20b\n", "/a b", false, "Disallow: /a%20b"},
		{"quote and braces", "User-agent: *\nDisallow: /\"{x}`\n", "/%22%7Bx%7D%60", false, "Disallow: /\"{x}`"},
		{"braces in a query", "User-agent: *\nDisallow: /*?q={x}\n", "/a?q={x}", false, "Disallow: /*?q={x}"},
		{"another character", "User-agent: *\nDisallow: /a b\n", "/a+b", true, ""},
		{"robots.txt, escaped", "User-agent: *\nDisallow: /\n", "/%72obots.txt", true, ""},
		{"slash escaped is another", "User-agent: *\nDisallow: /a/b\n", "/a%2Fb", true, ""},
		{"broken escape", "User-agent: *\nDisallow: /a%zz%\n", "/a%zz%", false, "Disallow: /a%zz%"},

		{"index page stands for its folder", "User-agent: *\nDisallow: /\nAllow: /a/index.html\n", "/a/", true,
			"Allow: /a/index.html"},
		{"but not for what is in it", "User-agent: *\nDisallow: /\nAllow: /a/index.html\n", "/a/b", false, "Disallow: /"},
		{"nor when disallowed", "User-agent: *\nDisallow: /a/index.html\n", "/a/", true, ""},

		{"byte order mark", "\xEF\xBB\xBFUser-agent: *\nDisallow: /\n", "/x", false, "Disallow: /"},
		{"CR", "User-agent: *\rDisallow: /x\rAllow: /x/y", "/x/y", true, "Allow: /x/y"},
		{"CRLF", "User-agent: *\r\nDisallow: /x\r\n", "/x", false, "Disallow: /x"},
		{"missing colon", "User-agent *\nDisallow\t/x\n", "/x", false, "Disallow\t/x"},
		{"too many words without colon", "User-agent: *\nDisallow /x /y\n", "/x", true, ""},
		{"NUL ends a line", "User-agent: *\nDisallow: /x\x00/y\n", "/x/z", false, "Disallow: /x"},
		{"rule before any agent", "Disallow: /\nUser-agent: *\nDisallow: /y\n", "/x", true, ""},
	} {
		ok, rule := Parse([]byte(c.robots), "kumo").Allowed(c.path)
		if ok != c.ok || rule != c.rule {
			t.Errorf("%s: %q for %s: %v by %q, want %v by %q", c.why, c.robots, c.path, ok, rule, c.ok, c.rule)
		}
	}
}

// TestGroups checks which lines apply to kumo: they forbid /k, and other lines forbid /s.
func TestGroups(t *testing.T) {
	for why, robots := range map[string]string{
		"specific beats star": "User-agent: kumo\nDisallow: /k\nUser-agent: *\nDisallow: /s\n",
		"in any order":        "User-agent: *\nDisallow: /s\nUser-agent: kumo\nDisallow: /k\n",
		"star otherwise":      "User-agent: *\nDisallow: /k\nUser-agent: kumobot\nDisallow: /s\n",
		"star with words":     "User-agent: * (all)\nDisallow: /k\nUser-agent: *bot\nDisallow: /s\n",
		"version ignored":     "User-agent: KuMo/2.1 (x)\nDisallow: /k\nUser-agent: *\nDisallow: /s\n",
		"several names": "User-agent: a\nUser-agent: kumo\n\nUser-agent: b\nDisallow: /k\nUser-agent: " +
			"c\nDisallow: /s\n",
		"shared with star": "User-agent: *\nUser-agent: kumo\nDisallow: /k\nUser-agent: *\nDisallow: /s\n",
		"merged":           "User-agent: kumo\nAllow: /a\nUser-agent: *\nDisallow: /s\nUser-agent: kumo\nDisallow: /k\n",
		"delay ends no run": "User-agent: kumo\nCrawl-delay: 1\nUser-agent: b\nDisallow: /k\nUser-agent: " +
			"*\nDisallow: /s\n",
		"nor does a sitemap": "User-agent: kumo\nSitemap: /m\nfoo: bar\nUser-agent: b\nDisallow: /k\n",
		"an empty Disallow does": "User-agent: a\nDisallow:\nUser-agent: kumo\nDisallow: /k\n\nUser-agent: " +
			"b\nDisallow: /s\n",
		"blank lines end nothing": "User-agent: kumo\n\n\nAllow: /a\n\nDisallow: /k\n",
		"slips of spelling": "useragent: kumo\ndissallow: /k\nuser agent: b\ndisalow: /s\n" +
			"User-agents: kumo\nDiasllow: /k\nuser-agent: c\nDISALLAW: /s\n",
	} {
		r := Parse([]byte(robots), "Kumo")
		if ok, _ := r.Allowed("/k"); ok {
			t.Errorf("%s: /k is allowed by\n%s", why, robots)
		}
		if ok, rule := r.Allowed("/s"); !ok {
			t.Errorf("%s: /s is forbidden by %q of\n%s", why, rule, robots)
		}
	}
}

func TestNamedWithoutRules(t *testing.T) {
	r := Parse([]byte("User-agent: *\nDisallow: /\nCrawl-delay: 9\n\nUser-agent: kumo\nCrawl-delay: 2\n"), "kumo")
	if ok, rule := r.Allowed("/x"); !ok {
		t.Errorf("forbidden by %q, which is for others", rule)
	}
	if d, ok := r.Delay(); d != 2*time.Second || !ok {
		t.Errorf("delay %v, %v", d, ok)
	}
}

func TestDelay(t *testing.T) {
	for line, want := range map[string]time.Duration{
		"Crawl-delay: 10":                   10 * time.Second,
		"crawl-delay:0.25":                  250 * time.Millisecond,
		"Crawl-delay: 0,5":                  500 * time.Millisecond,
		"Crawl-delay 3":                     3 * time.Second,
		"Crawl-delay: 4 seconds":            4 * time.Second,
		"Crawl-delay: 0":                    0,
		"Crawl-delay: 5\nCrawl-delay: 3":    5 * time.Second,
		"Crawl-delay: 99999999999999999999": maxDelay,
		"Crawl-delay: -1":                   -1,
		"Crawl-delay: NaN":                  -1,
		"Crawl-delay: 1.2.3":                -1,
		"Crawl-delay:":                      -1,
		"Request-rate: 1/5":                 5 * time.Second,
		"Request-rate: 30/1m 0900-1700":     2 * time.Second,
		"Request-rate: 60 / 1h":             time.Minute,
		"Request-rate: 0/5":                 -1,
		"Request-rate: 5":                   -1,
	} {
		d, ok := Parse([]byte("User-agent: *\n"+line), "kumo").Delay()
		if !ok {
			d = -1
		}
		if d != want {
			t.Errorf("%q: %v, want %v", line, d, want)
		}
	}
}

func TestSitemaps(t *testing.T) {
	body := "Sitemap: https://a.example/1.xml # first\nUser-agent: b\nDisallow: /\nsite-map: " +
		"/2.xml\nSitemap:\nSITEMAP:https://a.example/3\n"
	want := []string{"https://a.example/1.xml", "/2.xml", "https://a.example/3"}
	if got := Parse([]byte(body), "kumo").Sitemaps(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLimits(t *testing.T) {
	head := "User-agent: *\n"
	filler := func(n int) string { return strings.Repeat("#", n-1) + "\n" }
	long := "/" + strings.Repeat("x", maxLine)
	cut := long[:maxLine-len("Disallow: ")]
	for _, c := range []struct {
		why, robots, path string
		ok                bool
	}{
		{"last line whole", head + filler(maxBody-len(head)-len("Disallow: /a")) + "Disallow: /a", "/a", false},
		{"last line ends at the limit", head + filler(maxBody-len(head)-len("Disallow: /a")) + "Disallow: /a\nDisallow: /b\n",
			"/a", false},
		{"beyond the limit", head + filler(maxBody-len(head)-len("Disallow: /a")) + "Disallow: /a\nDisallow: /b\n", "/b",
			true},
		{"cut by the limit", head + filler(maxBody-len(head)-len("Disallow: /")) + "Disallow: /a\n", "/b", true},
		{"one endless line", strings.Repeat("Disallow: /", maxBody), "/a", true},
		{"long line is cut", head + "Disallow: " + long + "yz", cut + "!", false},
		{"and what is left is all of it", head + "Disallow: " + long, cut[:len(cut)-1], true},
		{"long line of other octets", head + "Disallow: /" + strings.Repeat("é", maxLine),
			"/" + strings.Repeat("%C3%A9", maxLine), false},
	} {
		if ok, rule := Parse([]byte(c.robots), "kumo").Allowed(c.path); ok != c.ok {
			t.Errorf("%s: %v by %.60q", c.why, ok, rule)
		}
	}
}

func TestTarget(t *testing.T) {
	for url, want := range map[string]string{
		"":                                 "/",
		"https://a.example":                "/",
		"https://a.example/":               "/",
		"https://a.example/b/c;d?e=f#g":    "/b/c;d?e=f",
		"https://a.example?b":              "/?b",
		"https://a.example;b":              "/;b",
		"https://a.example#/b":             "/",
		"//a.example/b":                    "/b",
		"a.example/b?http://c":             "/b?http://c",
		"/b://c":                           "/b://c",
		"https://a.example/?u=http://b/#c": "/?u=http://b/",
	} {
		if got := Target(url); got != want {
			t.Errorf("%q: %q, want %q", url, got, want)
		}
	}
}

func TestFromStatus(t *testing.T) {
	body := []byte("User-agent: *\nDisallow: /x\n")
	for _, c := range []struct {
		status          int
		x, y, temporary bool
		rule            string // for /x
	}{
		{200, false, true, false, "Disallow: /x"},
		{206, false, true, false, "Disallow: /x"},
		{301, true, true, false, "robots.txt: status 301"},
		{401, true, true, false, "robots.txt: status 401"},
		{404, true, true, false, "robots.txt: status 404"},
		{429, false, false, true, "robots.txt: status 429"},
		{500, false, false, true, "robots.txt: status 500"},
		{503, false, false, true, "robots.txt: status 503"},
		{999, false, false, true, "robots.txt: status 999"},
		{0, false, false, true, "robots.txt: no answer"},
	} {
		r := FromStatus(c.status, body, "kumo")
		x, rule := r.Allowed("/x")
		y, _ := r.Allowed("/y")
		if x != c.x || y != c.y || r.Temporary() != c.temporary || rule != c.rule {
			t.Errorf("%d: /x %v by %q, /y %v, temporary %v", c.status, x, rule, y, r.Temporary())
		}
		if ok, _ := r.Allowed("/robots.txt"); !ok {
			t.Errorf("%d: /robots.txt is forbidden", c.status)
		}
	}
}
