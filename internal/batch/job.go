package batch

import (
	"context"
	"iter"

	"github.com/cespare/xxhash/v2"
)

// A Record is the input and output of jobs. The first byte of Value is its [Kind].
type Record struct{ Key, Value []byte }

// Emit adds a record to the output. The caller may reuse key and value afterwards. Emit is called by one goroutine at a
// time.
type Emit func(key, value []byte) error

// Groups iterates over the keys of a task's partition, sorted as bytes, each with its values. Keys and values are valid
// until the next one; values that are not read are skipped. If reading fails, the iteration ends early, and the runner
// fails the task whatever its function returns.
type Groups = iter.Seq2[[]byte, iter.Seq[[]byte]]

// A Job defines how records are processed. Except for the pages that a crawl fetches, its functions are pure: they may
// run again for the same input, in any process and order, and the output of failed runs is dropped. Several tasks of a
// job may call them concurrently.
type Job struct {
	Name string

	// Map processes one input record.
	Map func(ctx context.Context, t *Task, r Record, emit Emit) error
	// Combine reduces the values of a key before they are sent to a reducer. It is called any number of times, or
	// never. If nil, all values are sent.
	Combine func(key []byte, values iter.Seq[[]byte], emit func(value []byte) error) error
	// Partition returns which of n reducers processes a key. If nil, [HashPartition] is used.
	Partition func(key []byte, n int) int
	// Reduce processes a whole partition. The values of a key have no particular order. If nil, the output of Map is
	// the job's output.
	Reduce func(ctx context.Context, t *Task, groups Groups, emit Emit) error

	// Route returns where in the output a record is written. If nil, it is the folder "out", in a SequenceFile.
	Route func(key, value []byte) Route

	// WaitsForServers reports whether reducers mostly wait for servers. A runner on one machine then runs all of them
	// at once.
	WaitsForServers bool
}

// A Route is a folder below the job's output, and the format of its files. All records of a folder have the same
// format.
type Route struct {
	Folder string // "crawler_de/doc"
	Format Format
}

// A Format is the format of an output file.
type Format uint8

// The formats.
const (
	Sequence Format = iota // SequenceFile of BytesWritables, part-00000
	XML                    // XML document of the values without their first byte, part-00000.xml
	Lines                  // values without their first byte, including their line ends, part-00000.jsonl
)

// Reduces reports whether the job has reducers.
func (j *Job) Reduces() bool { return j.Reduce != nil }

// PartitionOf returns which of n reducers processes a key.
func (j *Job) PartitionOf(key []byte, n int) int {
	switch {
	case n <= 1:
		return 0
	case j.Partition == nil:
		return HashPartition(key, n)
	}
	return j.Partition(key, n)
}

// RouteOf returns where a record is written.
func (j *Job) RouteOf(key, value []byte) Route {
	if j.Route == nil {
		return Route{Folder: "out"}
	}
	return j.Route(key, value)
}

// HashPartition returns one of n partitions by the hash of a key. The result is the same in every process.
func HashPartition(key []byte, n int) int { return int(xxhash.Sum64(key) % uint64(n)) }

// EachKey converts a function for single keys into a Reduce function.
func EachKey(f func(ctx context.Context, t *Task, key []byte, values iter.Seq[[]byte],
	emit Emit) error) func(context.Context,
	*Task, Groups, Emit) error {
	return func(ctx context.Context, t *Task, groups Groups, emit Emit) error {
		for key, values := range groups {
			if err := f(ctx, t, key, values, emit); err != nil {
				return err
			}
		}
		return nil
	}
}
