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

// An M runs the tests of a package, as the testing.M does that it is made of.
type M struct {
	*testing.M
	PerProcessor int // tests at once, unless the flag -parallel says otherwise; 0: 1, as ever
}

// Run returns the exit code.
func (m M) Run() int {
	flag.Parse()
	given := flag.Lookup("test.fuzz").Value.String() != "" // then the flag means something else
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

// Where systems have files in memory. There a sync takes no time; what would be lost without it is shown by vfstest.Faulty,
// and not by a disk.
const (
	memory      = "/dev/shm"
	leastMemory = 4 << 30 // bytes that must be free
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}
