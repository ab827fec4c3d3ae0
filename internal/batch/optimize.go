package batch

import (
	"context"
	"iter"
)

// optimize selects the URLs to fetch next: targets of links that were never fetched. It reads the OutLinks of all
// rounds and the known URLs of earlier days.
func (s *setup) optimize() *Job {
	return &Job{Name: JobOptimize, Map: s.optimizeMap, Combine: optimizeCombine, Reduce: EachKey(s.optimizeReduce),
		Route: s.route}
}

var fetched = []byte{byte(KindFetched)}

func (s *setup) optimizeMap(_ context.Context, _ *Task, r Record, emit Emit) error {
	if KindOf(r.Value) == KindKnown {
		return emit(r.Key, fetched)
	}
	o, err := ReadOutLinks(r.Key, r.Value)
	if err != nil {
		return err
	}
	if err := emit(r.Key, fetched); err != nil {
		return err
	}
	var key, value []byte
	for _, link := range o.Links {
		in := o.To(link)
		key, value = AppendKey(key[:0], in.Collection, in.URL), in.Append(value[:0])
		if err := emit(key, value); err != nil {
			return err
		}
	}
	return nil
}

func optimizeCombine(key []byte, values iter.Seq[[]byte], emit func([]byte) error) error {
	in, done, err := nearest(key, values)
	switch {
	case err != nil:
		return err
	case done:
		return emit(fetched)
	}
	return emit(in.Append(nil))
}

// nearest returns the shortest path to a URL, or reports that the URL was fetched.
func nearest(key []byte, values iter.Seq[[]byte]) (in InURL, done bool, err error) {
	first := true
	for v := range values {
		if KindOf(v) == KindFetched {
			return in, true, nil
		}
		one, err := ReadInURL(key, v)
		if err != nil {
			return in, false, err
		}
		if first {
			in, first = one, false
			continue
		}
		in.merge(&one)
	}
	return in, false, nil
}

func (s *setup) optimizeReduce(_ context.Context, t *Task, key []byte, values iter.Seq[[]byte], emit Emit) error {
	in, done, err := nearest(key, values)
	if err != nil || done {
		return err
	}
	m, err := s.member(in.Collection)
	if err != nil {
		return err
	}
	m.count(t, "new", 1)
	return emit(key, in.Append(nil))
}
