package weburl

import (
	"strings"
	"testing"
)

const allRules = DropTracking | DropSession | SortQuery | DropIndex | DropWWW

type ruleCase struct{ in, want string }

func TestDropTracking(t *testing.T) {
	testRules(t, DropTracking, []ruleCase{
		{"http://h/?utm_source=a", "http://h/"},
		{"http://h/a?utm_source=a&id=1&utm_medium=b", "http://h/a?id=1"},
		{"http://h/a?id=1&fbclid=x&b=2", "http://h/a?id=1&b=2"},
		{"http://h/a?UTM_Source=a&GCLID=b&id=1", "http://h/a?id=1"},
		{"http://h/a?%75tm_source=a&utm%5Fterm=b", "http://h/a"},
		{"http://h/a?id=1;utm_source=x;b=2", "http://h/a?id=1;b=2"},
		{"http://h/a?id=1&utm_source=x;b=2", "http://h/a?id=1;b=2"},
		{"http://h/a?utm_source", "http://h/a"},
		{"http://h/a?utm_=", "http://h/a"},
		{"http://h/a?gclid=1&gclid=2&mc_eid=3&_hsenc=4&yclid=5&msclkid=6", "http://h/a"},
		{"http://h/a?utm=1&gclids=2&xutm_source=3&ref=4&source=5&pk_id=6&=fbclid&q=utm_source", ""},
		{"http://h/a?&utm_source=1", "http://h/a"},
		{"http://h/a?&&b&", ""},
		{"http://h/a?utm_source=1&&b&", "http://h/a?&b&"},
		{"http://h/a?b=1%26utm_source=2", ""}, // an ampersand in a value
		{"http://h/utm_source=1", ""},
	})
}

func TestDropSession(t *testing.T) {
	const id = "0123456789abcdef"
	testRules(t, DropSession, []ruleCase{
		{"http://h/a;jsessionid=1A2B.node1", "http://h/a"},
		{"http://h/a.do;JSESSIONID=1A2B?b=c", "http://h/a.do?b=c"},
		{"http://h/a;x=1;jsessionid=2;y=3/b;jsessionid=4/", "http://h/a;x=1;y=3/b/"},
		{"http://h/;jsessionid=1", "http://h/"},
		{"http://h/a;jsessionids=1;x", ""},
		{"http://h/a%3Bjsessionid=1", ""},
		{"http://h/.;jsessionid=1/..;jsessionid=2", ""}, // would be dot segments
		{"http://h/(S(lit3py55t21z5v55vlm25s55))/a.aspx", "http://h/a.aspx"},
		{"http://h/x/(S(lit3py55t21z5v55vlm25s55))/", "http://h/x/"},
		{"http://h/(S(short))/a.aspx", ""},
		{"http://h/?PHPSESSID=" + id + "&a=1", "http://h/?a=1"},
		{"http://h/?a=1&phpsessid=", "http://h/?a=1"},
		{"http://h/?ASPSESSIONIDQASBDRSA=X&ASP.NET_SessionId=Y&osCsid=Z&a", "http://h/?a"},
		{"http://h/?aspsessionid=1", ""},
		{"http://h/?CFID=12&a=1&CFTOKEN=34", "http://h/?a=1"},
		{"http://h/?CFID=12;CFTOKEN=34", "http://h/"},
		{"http://h/?cfid=12", ""},
		{"http://h/?cftoken=12&xcfid=1", ""},
		{"http://h/?sid=" + id + "&session_id=6ba7b810-9dad-11d1-80b4-00c04fd430c8&a", "http://h/?a"},
		{"http://h/a;sid=" + id, "http://h/a"},
		{"http://h/?sid=42&sessionid=keynote-on-monday-2024&session_id=0123456789012345&sessid=onlylettersandmore", ""},
		{"http://h/?s=" + id + "&session=" + id + "&token=" + id, ""}, // a search, a term, a key
	})
}

func TestSortQuery(t *testing.T) {
	testRules(t, SortQuery, []ruleCase{
		{"http://h/?b=1&a=2", "http://h/?a=2&b=1"},
		{"http://h/?b=2&a&b=1&a=0", "http://h/?a&a=0&b=2&b=1"},
		{"http://h/?x[]=2&x[]=1", ""},
		{"http://h/?b&&a&", "http://h/?a&b"},
		{"http://h/?&", "http://h/"},
		{"http://h/?b=1;a=2", ""},
		{"http://h/?b=1;z=2&a", "http://h/?a&b=1;z=2"},
		{"http://h/?b&=&a==", "http://h/?=&a==&b"},
		{"http://h/?B&a&%C3%A4&%61", "http://h/?%C3%A4&B&a&a"},
		{"http://h/?a-b&a=1", "http://h/?a=1&a-b"},
		{"http://h/?" + strings.Repeat("b&", 100) + "a", "http://h/?a" + strings.Repeat("&b", 100)},
	})
}

func TestDropIndex(t *testing.T) {
	testRules(t, DropIndex, []ruleCase{
		{"http://h/index.html", "http://h/"},
		{"http://h/a/INDEX.HTM?b", "http://h/a/?b"},
		{"http://h/Default.aspx", "http://h/"},
		{"http://h/a/index%2Ephp", "http://h/a/"},
		{"http://h/index.html/index.html", "http://h/index.html/"},
		{"http://h/index", ""}, {"http://h/index.html/", ""}, {"http://h/index.txt", ""}, {"http://h/index.html.en", ""},
		{"http://h/myindex.html", ""}, {"http://h/home.html", ""}, {"http://h/?index.html", ""},
		{"http://h/index.html;jsessionid=1", ""},
	})
}

func TestDropWWW(t *testing.T) {
	testRules(t, DropWWW, []ruleCase{
		{"https://www.example.com:8443/a?b", "https://example.com:8443/a?b"},
		{"http://www.www.example.com./", "http://example.com./"},
		{"http://www.a.example.co.uk/", "http://a.example.co.uk/"},
		{"http://www.www.com/", "http://www.com/"},
		{"http://www.com/", ""}, {"http://www.co.uk/", ""}, {"http://www.github.io/", ""}, {"http://www.localhost/", ""},
		{"http://www/", ""}, {"http://www./", ""}, {"http://www2.example.com/", ""}, {"http://a.www.example.com/", ""},
		{"http://127.0.0.1/", ""}, {"http://[::1]/", ""},
	})
}

func TestRulesTogether(t *testing.T) {
	testRules(t, allRules, []ruleCase{
		{"http://www.h.test/a/index.jsp;jsessionid=1?utm_source=x&c=1&sid=0123456789abcdef&b=2", "http://h.test/a/?b=2&c=1"},
		{"http://h/", ""},
		{"ftp://www.h.test/index.html?b&a", ""}, {"mailto:www.a@b?utm_source=c", ""},
	})
	testRules(t, 0, []ruleCase{{"http://www.h.test/index.html;jsessionid=1?utm_source=x&b&a&", ""}})
}

// testRules applies rules to canonical forms. An empty want means no change.
func testRules(t *testing.T, rules Rules, cases []ruleCase) {
	t.Helper()
	for _, c := range cases {
		u := parse(t, c.in).Canonical()
		if c.want == "" {
			c.want = u.String()
		}
		if got := rules.Apply(u); got.String() != c.want {
			t.Errorf("%s: %q = %q, want %q", rules, c.in, got, c.want)
		}
		checkRules(t, u)
	}
}

// checkRules checks the properties of any set of rules: the result is canonical and does not change again.
func checkRules(t *testing.T, u URL) {
	t.Helper()
	for rules := range allRules + 1 {
		v := rules.Apply(u)
		if again := rules.Apply(v); again != v {
			t.Errorf("%s: %q = %q, and that is %q", rules, u, v, again)
		}
		if back, err := Parse(v.String()); err != nil || back != v || v.Canonical() != v {
			t.Errorf("%s: %q = %q, which parses to %q, %v, canonical %q", rules, u, v, back, err, v.Canonical())
		}
		if v.Scheme() != u.Scheme() || v.Port() != u.Port() || Domain(v.Hostname()) != Domain(u.Hostname()) {
			t.Errorf("%s: %q = %q", rules, u, v)
		}
		if rules&DropWWW == 0 && v.Host() != u.Host() {
			t.Errorf("%s: %q = %q, on another host", rules, u, v)
		}
	}
}

func TestParseRules(t *testing.T) {
	for list, want := range map[string]Rules{
		"": 0, "none": 0, "tracking": DropTracking, "www, index,tracking": DropWWW | DropIndex | DropTracking,
		"tracking,session,sort,index,www": allRules,
	} {
		got, err := ParseRules(list)
		if err != nil || got != want {
			t.Errorf("%q = %v, %v", list, got, err)
		}
		if again, err := ParseRules(got.String()); err != nil || again != got {
			t.Errorf("%q reads as %v, %v", got.String(), again, err)
		}
	}
	if _, err := ParseRules("tracking,utm"); err == nil || !strings.Contains(err.Error(), `"utm"`) {
		t.Errorf("an unknown rule: %v", err)
	}
}

func TestRulesDoNotAllocate(t *testing.T) {
	for _, href := range []string{
		"http://example.com/articles/2024/some-title.html?a=1&b=2;c=3",
		"https://www2.example.com/a;b=c/(S(x))/d?cfid=1&sid=2",
	} {
		u := parse(t, href)
		if n := testing.AllocsPerRun(100, func() { allRules.Apply(u) }); n != 0 {
			t.Errorf("%s: %v allocations", href, n)
		}
	}
}

// However many parameters and labels a link has, rewriting it takes linear time.
func TestRulesOnHostileLinks(t *testing.T) {
	for _, piece := range []string{"cfid&", "cftoken=;cfid=&", "utm_a&", "&", "z&a&", ";jsessionid=1",
		"/(S(lit3py55t21z5v55vlm25s55))"} {
		half := strings.Repeat(piece, (MaxLength/2-100)/len(piece))
		checkRules(t, parse(t, "http://www.example.com/"+half+"?"+half).Canonical())
	}
	checkRules(t, parse(t, "http://"+strings.Repeat("www.", 1000)+"example.com/").Canonical())
}
