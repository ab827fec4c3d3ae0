// Package testmain provides a TestMain for packages whose tests mostly wait for delays, leases, elections, other
// processes or the disk. It runs more tests that call t.Parallel at once than there are processors. It also puts
// temporary files in memory, if the system has enough.
package testmain

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// An M runs the tests of a package. It wraps a testing.M.
type M struct {
	*testing.M
	PerProcessor int // parallel tests per processor, unless the flag -parallel is given; 0: 1, Go's default
}

// Run returns the exit code.
func (m M) Run() int {
	flag.Parse()
	given := flag.Lookup("test.fuzz").Value.String() != "" // the flag has another meaning there
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given && m.PerProcessor > 0 {
		must(flag.Set("test.parallel", strconv.Itoa(m.PerProcessor*runtime.GOMAXPROCS(0))))
	}
	const folder = "TMPDIR"
	if _, chosen := os.LookupEnv(folder); !chosen && inMemory(memory) {
		must(os.Setenv(folder, memory))
	}
	return m.M.Run()
}

// Mount points of in-memory file systems. A sync takes no time there. vfstest.Faulty, not a disk, tests for data lost
// without a sync.
const (
	memory      = "/dev/shm"
	leastMemory = 4 << 30 // minimum number of free bytes
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}
