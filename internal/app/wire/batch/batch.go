// Package batch selects and opens the runner of a batch crawl by name.
package batch

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/wire/places"
	"kumo/internal/archive/place"
	"kumo/internal/archive/place/file"
	"kumo/internal/archive/place/hdfs"
	"kumo/internal/base/advice"
	"kumo/internal/base/vfs"
	"kumo/internal/batch"
	"kumo/internal/batch/collection"
	"kumo/internal/batch/hadoop"
	"kumo/internal/batch/local"
	"kumo/internal/state/store"
	"kumo/internal/state/store/warc"
)

// A Setup configures a runner.
type Setup struct {
	On     string      // "local" or "hadoop"
	Place  place.Place // of input and output
	Temp   string      // a folder; default: one in Place if that is a local folder, otherwise the system's
	Memory int64       // bytes for sorting; default 192 MiB
}

// Runners returns the names of the runners.
func Runners() []string { return []string{"local", "hadoop"} }

// OpenRunner opens a runner.
func OpenRunner(s Setup) (batch.Runner, error) {
	switch s.On {
	case "local":
		temp := s.Temp
		if f, ok := s.Place.(*file.Place); ok && temp == "" {
			temp = filepath.Join(f.Dir(), batch.WorkFolder, ".temp")
		}
		return local.New(local.Config{Place: s.Place, Temp: cmp.Or(temp, os.TempDir()), Memory: s.Memory}), nil
	case "hadoop":
		return onHadoop(s)
	}
	return nil, advice.Usage("--on %s: available are %s", s.On, strings.Join(Runners(), ", "))
}

// HadoopTask is the command line of a Hadoop Streaming task.
var HadoopTask = []string{"batch", "attempt"}

func onHadoop(s Setup) (batch.Runner, error) {
	at, is := s.Place.(*hdfs.Place)
	if !is {
		return nil, advice.Usage("--on hadoop needs a --place on its file system, such as hdfs://host:port/path or "+
			"hdfs:///path; this is %s", s.Place.URL())
	}
	conf, err := places.HadoopConf()
	if err != nil {
		return nil, err
	}
	client, err := hadoop.FindClient(conf, "", "")
	if err != nil {
		return nil, err
	}
	return hadoop.New(hadoop.Config{Place: at, Conf: conf, Client: client, Task: HadoopTask})
}

// MemoryLimit returns the memory limit of a process that sorts in the given memory; 0: the default.
func MemoryLimit(memory int64) int64 { return local.Config{Memory: memory}.MemoryLimit() }

// Reducers returns the default number of partitions.
func Reducers() int { return runtime.GOMAXPROCS(0) }

// Fetching returns the default fetch settings of a batch crawl. contact is a URL or mail address for site owners.
func Fetching(contact string) batch.Fetching {
	return batch.Fetching{Agent: job.Agent, UserAgent: job.UserAgent(contact), AddressDelay: 250 * time.Millisecond}
}

// OpenWARC opens a store of WARC files in a folder, for one day of a collection.
func OpenWARC(dir, compression string, maxSize int64, c *collection.Collection, date string) (store.Store, error) {
	hostname, err := os.Hostname()
	if err != nil {
		hostname = "localhost"
	}
	return warc.Open(vfs.OS, warc.Config{Dir: dir, Name: job.SafeName(c.Directory + "-" + date),
		Hostname: job.SafeName(hostname), MaxSize: maxSize, Compression: compression,
		Software: job.Agent + "/" + job.Version, Info: [][2]string{{"robots", "obey"}, {"description", "a day of the " +
			"batch crawl " + c.Code}}}, nil)
}
