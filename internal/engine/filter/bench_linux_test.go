package filter

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Each filter accepts every link; they differ in how they read and write.
var benchmarked = map[string]string{
	// as in the examples: a line, an answer, a flush
	"lines": `import json, sys
sys.stdin.readline()
print('{"points": ["link"]}', flush=True)
for line in sys.stdin:
    link = json.loads(line)
    print(json.dumps({"id": link["id"]}), flush=True)
`,
	// all input that is available, then one write
	"batches": `import json, os, sys
sys.stdin.readline()
print('{"points": ["link"]}', flush=True)
rest = b""
while data := os.read(0, 1 << 16):
    *lines, rest = (rest + data).split(b"\n")
    os.write(1, b"".join(b'{"id":%d}\n' % json.loads(line)["id"] for line in lines))
`,
}

// Measures the cost of a link with a filter in Python: go test -run none -bench Ask ./internal/engine/filter
func BenchmarkAsk(b *testing.B) {
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		b.Skip(err)
	}
	for _, name := range []string{"lines", "batches"} {
		for _, links := range []int{1, 100} {
			b.Run(fmt.Sprintf("%s/%d", name, links), func(b *testing.B) {
				file := filepath.Join(b.TempDir(), "filter.py")
				if err := os.WriteFile(file, []byte(benchmarked[name]), 0o600); err != nil {
					b.Fatal(err)
				}
				p, err := Open(b.Context(), Config{Command: python + " " + file, Env: Environ(os.Environ())})
				if err != nil {
					b.Fatal(err)
				}
				qs := questions(links)
				for i := range qs {
					qs[i].From, qs[i].Text, qs[i].Element, qs[i].Depth = "http://a.test/some/page.html", "An anchor's text", "a", 3
				}
				if _, err := p.Ask(qs); err != nil {
					b.Fatal(err)
				}
				own, theirs := cpu(false), cpu(true)
				b.ResetTimer()
				var all sync.WaitGroup
				for i := range 8 {
					all.Go(func() {
						for n := i; n < b.N; n += 8 {
							if _, err := p.Ask(qs); err != nil {
								b.Error(err)
							}
						}
					})
				}
				all.Wait()
				b.StopTimer()
				own = cpu(false) - own
				p.Close()
				theirs = cpu(true) - theirs // available once they have ended
				n := float64(b.N * links)
				b.ReportMetric(float64(b.Elapsed().Microseconds())/n, "us/link")
				b.ReportMetric(own*1e6/n, "kumo-cpu-us/link")
				b.ReportMetric(theirs*1e6/n, "python-cpu-us/link")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// cpu returns the processor time, in seconds, of this process or of its ended children.
func cpu(children bool) float64 {
	who, u := unix.RUSAGE_SELF, unix.Rusage{}
	if children {
		who = unix.RUSAGE_CHILDREN
	}
	if unix.Getrusage(who, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
