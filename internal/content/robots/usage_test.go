package robots

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const statementsFile = `Content-Signal: search=yes
User-agent: *
Content-Signal: ai-train=no # not for training
Content-Usage: train-ai=n
Content-Usage: /open/ train-ai=y
Content-Usage: /open/ search=n
Content-Usage: /open/*.pdf$ train-ai=n
Allow: /

User-agent: kumo
Content-Usage: search=n
License: https://example.com/rsl.xml

User-agent: other
Content-Usage: search=y
Content-Usage:
Content-Usage: /only/a/path
`

func TestUsage(t *testing.T) {
	for _, test := range []struct {
		agent, target string
		want          []int // numbers of the lines
	}{
		{"any", "/", []int{1, 3, 4, 12}},
		{"any", "/open/a", []int{1, 3, 5, 6, 12}},
		{"any", "/open/a.pdf", []int{1, 3, 7, 12}},
		{"any", "/%6Fpen/a", []int{1, 3, 5, 6, 12}},
		{"kumo", "/open/a", []int{1, 11, 12}},
		{"other", "/only/a/path", []int{1, 12, 15}},
	} {
		var got []int
		for _, s := range Parse([]byte(statementsFile), test.agent).Usage(test.target) {
			got = append(got, s.Number)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("agent %s, %s: lines %v, want %v", test.agent, test.target, got, test.want)
		}
	}
	line := Parse([]byte(statementsFile), "any").Usage("/")[1]
	if line.Text != "Content-Signal: ai-train=no" || line.Value != "ai-train=no" || line.Kind != ContentSignal {
		t.Errorf("line 3 is %+v", line)
	}
}

// Statements must not change which pages may be fetched.
func TestUsageEndsNoGroup(t *testing.T) {
	r := Parse([]byte("User-agent: kumo\nContent-Signal: ai-train=no\nUser-agent: other\nDisallow: /\n"), "kumo")
	if ok, _ := r.Allowed("/a"); ok {
		t.Error("the statement ended the group")
	}
}

func TestUsageIsBounded(t *testing.T) {
	file := "User-agent: *\n" + strings.Repeat("Content-Usage: train-ai=n\n", 1000)
	if n := len(Parse([]byte(file), "kumo").Usage("/")); n != maxStatements {
		t.Errorf("%d statements, want %d", n, maxStatements)
	}
	file = "Content-Usage: train-ai=" + strings.Repeat("n", maxStatement) + "\n"
	if s := Parse([]byte(file), "kumo").Usage("/"); s != nil {
		t.Errorf("got %d statements of an overlong line", len(s))
	}
}

// Rules with statements alone must survive the cache, which stores only files with rules.
func TestUsageInCache(t *testing.T) {
	c := NewCache(Config{Agent: "kumo", MaxBytes: 1})
	defer c.Close()
	const origins = 3
	for i := range origins {
		c.Answer(fmt.Sprint("https://", i), 200, []byte("Content-Signal: ai-train=no\n"))
	}
	for i := range origins {
		r, ok := c.Get(fmt.Sprint("https://", i))
		if !ok || len(r.Usage("/")) != 1 {
			t.Errorf("origin %d: rules %v, known %v", i, r, ok)
		}
	}
}

func TestUsageFromLines(t *testing.T) {
	r := Parse([]byte(statementsFile), "any")
	again := FromLines(r.Lines())
	if got, want := again.Usage("/open/a"), r.Usage("/open/a"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestUsageAllocs(t *testing.T) {
	r := Parse([]byte("User-agent: *\nDisallow: /private/\n"), "kumo")
	if n := testing.AllocsPerRun(100, func() { r.Usage("/a") }); n != 0 {
		t.Errorf("%v allocations without statements", n)
	}
}

func TestMatchesPath(t *testing.T) {
	for _, test := range []struct {
		pattern, target string
		want            bool
	}{
		{"/", "/a", true}, {"*", "/a", true}, {"/a/*.html$", "/a/b.html", true}, {"/a/*.html$", "/a/b.html?q", false},
		{"/a$", "/ab", false}, {"/é", "/%C3%A9", true}, {"", "/", false}, {"a", "/a", false},
	} {
		if got := MatchesPath(test.pattern, test.target); got != test.want {
			t.Errorf("MatchesPath(%q, %q) = %v", test.pattern, test.target, got)
		}
	}
}
