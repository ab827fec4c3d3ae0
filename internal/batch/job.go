package batch

import (
	"context"
	"iter"

	"github.com/cespare/xxhash/v2"
)

// A Record is what jobs read and write. What a value is of, its first byte says, see [Kind].
type Record struct{ Key, Value []byte }

// Emit takes a record. Key and value are the caller's again when it returns. It is called by one goroutine at a time.
type Emit func(key, value []byte) error

// Groups are the keys of a task's partition in the order of their bytes, each with its values. Keys and values are
// valid until the next one; values that are not asked for are passed over. Where reading fails, they end early, and the
// runner fails the task whatever its function returns.
type Groups = iter.Seq2[[]byte, iter.Seq[[]byte]]

// A Job is what is done with records. Its functions are pure but for what a crawl fetches: they may be run again for
// the same input, in any process and in any order, and what failed runs emitted is dropped. Several tasks of a job may
// call them at once.
type Job struct {
	Name string

	// Map takes one record of the input.
	Map func(ctx context.Context, t *Task, r Record, emit Emit) error
	// Combine makes fewer of a key's values before they are sent to a reducer, any number of times, or never. nil: all
	// are sent.
	Combine func(key []byte, values iter.Seq[[]byte], emit func(value []byte) error) error
	// Partition says which of n reducers has a key. nil: by [HashPartition].
	Partition func(key []byte, n int) int
	// Reduce takes a whole partition. Values of a key come in no particular order. nil: what Map emits is the output.
	Reduce func(ctx context.Context, t *Task, groups Groups, emit Emit) error

	// Route says where in the output a record lies. nil: in the folder "out", as a record.
	Route func(key, value []byte) Route

	// WaitsForServers says that reducers mostly wait, for servers: a runner on one machine runs all of them at once.
	WaitsForServers bool
}

// A Route is where a record lies: in a folder below the job's output, in a file of some form. All records of a folder
// have the same form.
type Route struct {
	Folder string // "crawler_de/doc"
	Format Format
}

// A Form is how a file holds records.
type Format uint8

// The forms.
const (
	Sequence Format = iota // a SequenceFile of BytesWritables, part-00000
	XML                    // an XML document of the values without their first byte, part-00000.xml
	Lines                  // the values without their first byte, each with its line end, part-00000.jsonl
)

// Reduces reports whether the job has reducers.
func (j *Job) Reduces() bool { return j.Reduce != nil }

// PartitionOf is the reducer, of n, that has a key.
func (j *Job) PartitionOf(key []byte, n int) int {
	switch {
	case n <= 1:
		return 0
	case j.Partition == nil:
		return HashPartition(key, n)
	}
	return j.Partition(key, n)
}

// RouteOf is where a record lies.
func (j *Job) RouteOf(key, value []byte) Route {
	if j.Route == nil {
		return Route{Folder: "out"}
	}
	return j.Route(key, value)
}

// HashPartition is one of n partitions by the hash of a key's bytes. It is the same in every process.
func HashPartition(key []byte, n int) int { return int(xxhash.Sum64(key) % uint64(n)) }

// EachKey is a Reduce of a function for each key.
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
