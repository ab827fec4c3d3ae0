package batchtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"kumo/internal/batch"
)

// Job returns the suite's job with a name, for tasks in other processes, or nil.
func Job(name string) *batch.Job {
	j := jobs[name]
	if j != nil {
		j.Name = name
	}
	return j
}

var jobs = map[string]*batch.Job{
	// emits every record unchanged
	"identity": {Map: pass, Reduce: batch.EachKey(passAll)},
	// counts the words of the values
	"words": {Map: words, Combine: sum, Reduce: batch.EachKey(sumAll)},
	// no reducers; records whose keys begin with "x" go to their own folder
	"map-only": {Map: pass, Route: func(key, _ []byte) batch.Route {
		if bytes.HasPrefix(key, []byte("x")) {
			return batch.Route{Folder: "apart/x"}
		}
		return batch.Route{Folder: "out"}
	}},
	// partitions keys by their first byte; each reducer records its number
	"partition": {Map: pass, Partition: func(key []byte, n int) int { return int(key[0]) % n },
		Reduce: batch.EachKey(func(_ context.Context, t *batch.Task, key []byte, _ iter.Seq[[]byte], emit batch.Emit) error {
			return emit(key, fmt.Appendf(nil, "%d of %d", t.Index, t.Total))
		})},
	// the first attempt of each task fails after some output
	"flaky": {Map: flakyMap, Reduce: flakyReduce},
	// every attempt fails
	"failing": {Map: pass, Reduce: func(context.Context, *batch.Task, batch.Groups, batch.Emit) error { return errFails }},
	// reads and counts only the first value of each key
	"first": {Map: pass, Reduce: batch.EachKey(func(_ context.Context, t *batch.Task, key []byte, values iter.Seq[[]byte],
		emit batch.Emit) error {
		t.Status("at " + string(key[:min(len(key), 20)]))
		for range values {
			t.Count("test", "first", 1)
			break
		}
		return emit(key, nil)
	})},
	// XML pages
	"xml": {Map: pass, Route: func([]byte, []byte) batch.Route { return batch.Route{Folder: "xml", Format: batch.XML} }},
}

var errFails = errors.New("this job fails")

func pass(_ context.Context, t *batch.Task, r batch.Record, emit batch.Emit) error {
	t.Count("test", "in", 1)
	return emit(r.Key, r.Value)
}

func passAll(_ context.Context, _ *batch.Task, key []byte, values iter.Seq[[]byte], emit batch.Emit) error {
	for v := range values {
		if err := emit(key, v); err != nil {
			return err
		}
	}
	return nil
}

func words(_ context.Context, t *batch.Task, r batch.Record, emit batch.Emit) error {
	t.Count("test", "in", 1)
	for _, w := range bytes.Fields(r.Value) {
		if err := emit(w, []byte("1")); err != nil {
			return err
		}
	}
	return nil
}

func sum(_ []byte, values iter.Seq[[]byte], emit func([]byte) error) error {
	n := 0
	for v := range values {
		i, err := strconv.Atoi(string(v))
		if err != nil {
			return err
		}
		n += i
	}
	return emit(strconv.AppendInt(nil, int64(n), 10))
}

func sumAll(_ context.Context, _ *batch.Task, key []byte, values iter.Seq[[]byte], emit batch.Emit) error {
	return sum(key, values, func(v []byte) error { return emit(key, v) })
}

func flakyMap(ctx context.Context, t *batch.Task, r batch.Record, emit batch.Emit) error {
	if err := pass(ctx, t, r, emit); err != nil {
		return err
	}
	if t.Attempt == 0 && t.Counters().Get("test", "in") == 3 {
		return errFails
	}
	return nil
}

func flakyReduce(ctx context.Context, t *batch.Task, groups batch.Groups, emit batch.Emit) error {
	for key, values := range groups {
		if err := passAll(ctx, t, key, values, emit); err != nil {
			return err
		}
		t.Count("test", "keys", 1)
		if t.Attempt == 0 {
			return errFails
		}
	}
	return nil
}
