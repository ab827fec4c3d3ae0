package choices

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/temoto/robotstxt"

	"kumo/internal/content/robots"
)

// A verdict is the result of Google's parser for a URL, an agent and a file.
type verdict struct {
	body       []byte
	agent, url string
	allowed    bool
}

func specVerdicts(t testing.TB) (all []verdict) {
	for line := range strings.Lines(string(readFile(t, testdata(t, "robots", "spec.jsonl")))) {
		var c struct {
			Robots  []byte `json:"robots_b64"`
			UA, URL string
			Allowed bool
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, verdict{c.Robots, c.UA, c.URL, c.Allowed})
	}
	return all
}

func realVerdicts(t testing.TB) (all []verdict) {
	bodies := map[string][]byte{}
	for line := range strings.Lines(string(readFile(t, testdata(t, "robots", "real.tsv")))) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		body, ok := bodies[f[0]]
		if !ok {
			body = readFile(t, testdata(t, "robots", "real", f[0]))
			bodies[f[0]] = body
		}
		all = append(all, verdict{body, f[1], f[2], f[3] == "1"})
	}
	return all
}

// readers parse a file for an agent, and return which URLs, given as path and query, it allows.
var readers = []struct {
	name string
	read func(body []byte, agent string) (allows func(target string) bool)
}{
	{"kumo", func(body []byte, agent string) func(string) bool {
		r := robots.Parse(body, agent)
		return func(target string) bool {
			ok, _ := r.Match(target)
			return ok
		}
	}},
	{"temoto/robotstxt", func(body []byte, agent string) func(string) bool {
		r, err := robotstxt.FromBytes(body)
		if err != nil {
			return func(string) bool { return true } // it rejects some files
		}
		return r.FindGroup(agent).Test
	}},
}

// TestRobots compares verdicts with those of Google's parser.
func TestRobots(t *testing.T) {
	for _, set := range []struct {
		name string
		all  []verdict
	}{{"the specification's", specVerdicts(t)}, {"real files'", realVerdicts(t)}} {
		for _, r := range readers {
			right, forbidden := 0, 0
			for _, v := range set.all {
				switch ok := r.read(v.body, v.agent)(robots.Target(v.url)); {
				case ok == v.allowed:
					right++
				case ok:
					forbidden++
				}
			}
			t.Logf("%-17s %d of %d of %s; of the others %d are forbidden and would be fetched",
				r.name, right, len(set.all), set.name, forbidden)
		}
	}
}

// BenchmarkRobots parses real files for one agent, and checks ten URLs each.
func BenchmarkRobots(b *testing.B) {
	var files [][]byte
	last, size := "", 0
	for _, v := range realVerdicts(b) {
		if string(v.body) != last {
			last = string(v.body)
			files, size = append(files, v.body), size+len(v.body)
		}
	}
	var urls []string
	for i := range 10 {
		urls = append(urls, fmt.Sprintf("/articles/2026/11/a-title-in-words-%d.html?page=2", i))
	}
	b.Logf("%d files of %d bytes in the mean, 10 URLs each", len(files), size/len(files))
	var all []*contender
	for _, r := range readers {
		all = append(all, &contender{name: r.name, run: func() error {
			for _, f := range files {
				allows := r.read(f, "kumo")
				for _, url := range urls {
					allows(url)
				}
			}
			return nil
		}})
	}
	byTurns(b, "file", len(files), all...)
}
