package star

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kumo/internal/base/advice"
	"kumo/internal/engine/filter"
)

func write(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "f.star")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const all = `
want = ["html", "header"]
seen = []

def link(l):
    u = l["url"]
    if u.endswith("/drop"):
        return {"drop": "not " + l["element"]}
    if u.endswith("/move"):
        return {"url": "there", "rank": 1 << l["depth"]}
    if u.endswith("/loop"):
        while True: pass
    if u.endswith("/deep"):
        return link
    if u.endswith("/slip"):
        return {"dorp": "x"}
    if u.endswith("/fields"):
        return {"fields": {}}
    if u.endswith("/frozen"):
        seen.append(u)
    if u.endswith("/long"):
        return "x" * 10

def record(p):
    return {"fields": {"type": p["header"]["X-A"][0], "n": len(p["html"]), "cut": p.get("cut")}}
`

func TestAnswers(t *testing.T) {
	s, err := Open(filter.Config{Command: write(t, all), Default: filter.Drop})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if c := s.Choice(); !c.Asks(filter.Link) || c.Asks(filter.Request) || !c.Asks(filter.Record) || !c.Wants("html") ||
		c.Wants("text") {
		t.Errorf("the choice is %+v", c)
	}
	var many sync.WaitGroup
	for range 8 {
		many.Go(func() {
			for name, want := range map[string]filter.Answer{"": {}, "drop": {Drop: "not a"}, "move": {URL: "there", Rank: 8},
				"loop":   {Drop: "no answer: line 14: Starlark computation cancelled: too many steps"},
				"deep":   {Drop: "no answer: not an answer: link returned a function, expected None or a dict"},
				"slip":   {Drop: `no answer: not an answer: unknown field "dorp": "{\"dorp\":\"x\"}"`},
				"fields": {Drop: "no answer: not an answer: only records have fields"},
				"frozen": {Drop: "no answer: line 20: append: cannot append to frozen list"},
				"long":   {Drop: "no answer: not an answer: link returned a string, expected None or a dict"},
			} {
				a, err := s.Ask([]filter.Question{{Point: filter.Link, URL: "http://a.test/" + name, Element: "a", Depth: 3}})
				if err != nil {
					t.Error(err)
					return
				}
				if got := a[0]; got.Drop != want.Drop || got.URL != want.URL || got.Rank != want.Rank {
					t.Errorf("%s: %+v, want %+v", name, got, want)
				}
			}
		})
	}
	many.Wait() // an endless loop is reported at the line after it
	if c := s.Counts(); c.Points["link"].Asked != 72 || c.Points["link"].Unanswered != 48 || c.Nonsense != 32 ||
		c.Crashed != 16 {
		t.Errorf("counted %+v, %+v", c, c.Points["link"])
	}
	a, err := s.Ask([]filter.Question{{Point: filter.Record,
		Page: &filter.Page{HTML: "abc", Header: map[string][]string{"X-A": {"b"}}}}})
	if err != nil || string(a[0].Fields) != `{"cut":null,"n":3,"type":"b"}` {
		t.Errorf("%+v (%v)", a, err)
	}
}

func TestStopEndsTheCrawl(t *testing.T) {
	s, err := Open(filter.Config{Command: write(t, "def request(r): return 1")})
	if err != nil {
		t.Fatal(err)
	}
	q := []filter.Question{{Point: filter.Request, URL: "http://a.test/"}}
	_, err = s.Ask(q)
	if unanswered, is := errors.AsType[*filter.UnansweredError](err); !is || !errors.Is(unanswered, filter.ErrInvalidAnswer) ||
		advice.Of(err) == "" {
		t.Errorf("the error is %v", err)
	}
}

func TestWhatIsWrongWithAFile(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "it defines none of the functions",
		"def f(: pass":                  "f.star:1:8: got ':'",
		"link = 1":                      "link is not a function",
		"def link(l): return x":         "f.star:1:21: undefined: x",
		"want = 1\ndef record(p): pass": `want is a list`,
		"want = [\"bytes\"]\ndef record(p): pass": `unknown data in want: "bytes"`,
		"while True: pass":                        "too many steps",
		"load('x', 'y')":                          "load not implemented",
		strings.Repeat("#", maxFile+1):            "the limit is",
	} {
		if err := Check(write(t, text)); err == nil || !advice.IsUsage(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v, want %q", text, err, want)
		}
	}
	if err := Check("nosuch.star"); err == nil || !advice.IsUsage(err) {
		t.Errorf("nosuch.star: %v", err)
	}
}

const operators = `
def link(l):
    u = l["url"]
    if "/calendar/" in u or u.endswith(".pdf"):
        return {"drop": "a calendar"}
    host = u.split("/")[2]
    if host.startswith("www.") and l["depth"] + 1 > 9:
        return {"rank": 0.5}
    n = 0
    for word in ["a", "b", "c"]:
        if word in u:
            n += 1
    if n > 1:
        return {"drop": "%d words of %s" % (n, host)}
`

// go test -run none -bench . ./internal/engine/filter/star
func BenchmarkLink(b *testing.B) {
	for name, file := range map[string]string{"example": "../../../../examples/filters/only_recipes.star",
		"yes":       write(b, "def link(l): pass"),
		"operators": write(b, operators)} {
		b.Run(name, func(b *testing.B) { benchmark(b, file) })
	}
}

func benchmark(b *testing.B, file string) {
	s, err := Open(filter.Config{Command: file})
	if err != nil {
		b.Fatal(err)
	}
	q := []filter.Question{{Point: filter.Link, URL: "http://a.test/some/page.html", From: "http://a.test/",
		Text: "An anchor's text", Element: "a", Depth: 3}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Ask(q); err != nil {
			b.Fatal(err)
		}
	}
}
