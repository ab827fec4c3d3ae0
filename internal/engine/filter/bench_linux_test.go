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

// Each filter says yes to every link; what differs is how it reads and writes.
var benchmarked = map[string]string{
	// as the examples do: a line, an answer, a flush
	"lines": `import json, sys
sys.stdin.readline()
print('{"points": ["link"]}', flush=True)
for line in sys.stdin:
    link = json.loads(line)
    print(json.dumps({"id": link["id"]}), flush=True)
`,
	// all that has come at once, and one write for it
	"batches": `import json, os, sys
sys.stdin.readline()
print('{"points": ["link"]}', flush=True)
rest = b""
while data := os.read(0, 1 << 16):
    *lines, rest = (rest + data).split(b"\n")
    os.write(1, b"".join(b'{"id":%d}\n' % json.loads(line)["id"] for line in lines))
`,
}

// What a link costs with a filter in Python: go test -run none -bench Ask ./internal/engine/filter
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
				theirs = cpu(true) - theirs // which is known once they have ended
				n := float64(b.N * links)
				b.ReportMetric(float64(b.Elapsed().Microseconds())/n, "us/link")
				b.ReportMetric(own*1e6/n, "kumo-cpu-us/link")
				b.ReportMetric(theirs*1e6/n, "python-cpu-us/link")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// cpu is how many seconds of processor this process, or the children that have ended, have used.
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
