package robots

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func testdata(t testing.TB) string {
	dir := os.Getenv("KUMO_TEST_DATA")
	if dir == "" {
		t.Skip("KUMO_TEST_DATA does not name the folder of conformance data")
	}
	return filepath.Join(dir, "robots")
}

// eachLine calls f with every line of a file of the conformance data.
func eachLine(t *testing.T, name string, f func(line string)) {
	t.Helper()
	file, err := os.Open(filepath.Join(testdata(t), name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		f(lines.Text())
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestSpec(t *testing.T) {
	good, all := 0, 0
	eachLine(t, "spec.jsonl", func(line string) {
		var c struct {
			Robots  []byte `json:"robots_b64"`
			UA, URL string
			Allowed bool
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		all++
		ok, rule := Parse(c.Robots, c.UA).Match(Target(c.URL))
		if ok != c.Allowed {
			t.Errorf("%s may fetch %s: %v by %q\n%s", c.UA, c.URL, ok, rule, c.Robots)
			return
		}
		good++
	})
	t.Logf("%d of %d", good, all)
}

func TestReal(t *testing.T) {
	good, all := 0, 0
	bodies := map[string][]byte{}
	eachLine(t, "real.tsv", func(line string) {
		f := strings.Split(line, "\t")
		body, ok := bodies[f[0]]
		if !ok {
			var err error
			if body, err = os.ReadFile(filepath.Join(testdata(t), "real", f[0])); err != nil {
				t.Fatal(err)
			}
			bodies[f[0]] = body
		}
		all++
		allowed, rule := Parse(body, f[1]).Match(Target(f[2]))
		if allowed != (f[3] == "1") {
			t.Logf("%s may fetch %s: %v by %q", f[1], f[2], allowed, rule)
			return
		}
		good++
	})
	t.Logf("%d of %d", good, all)
	if float64(good) < 0.9995*float64(all) {
		t.Errorf("only %d of %d verdicts agree", good, all)
	}
}
