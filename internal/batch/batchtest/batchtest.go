// Package batchtest checks that job runners fulfill their contract. The output has the same records for any bytes and
// any number of reducers, and only records of successful attempts.
package batchtest

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/batch"
	xmlform "kumo/internal/state/store/xml"
)

// A Fixture is a runner and the storage location that it reads and writes.
type Fixture struct {
	Runner batch.Runner
	Place  place.Place
}

// Run tests a runner. open is called once per test and returns a runner with an empty storage location. Tasks in other
// processes find the suite's jobs through [Job] by the name in the Conf.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	for name, test := range map[string]func(*testing.T, Fixture){
		"the same records with 1, 2 and 5 reducers": sameRecords,
		"words are combined and counted":            wordCount,
		"an empty input":                            emptyInput,
		"no input at all":                           noInput,
		"a huge record":                             hugeRecord,
		"every byte value":                          everyByte,
		"without reducers":                          mapOnly,
		"keys are in the file of their partition":   partition,
		"a failed task is retried":                  flaky,
		"a failed job returns its error":            failing,
		"values that are not read":                  firstValues,
		"the output replaces an older one":          replaces,
		"an XML document":                           document,
		"a canceled run":                            canceled,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

type record struct{ key, value string }

func (r record) compare(o record) int {
	if c := strings.Compare(r.key, o.key); c != 0 {
		return c
	}
	return strings.Compare(r.value, o.value)
}

// write writes records to n input files.
func (f Fixture) write(t *testing.T, n int, all []record) (names []string) {
	t.Helper()
	for i := range n {
		name := fmt.Sprintf("input/part-%05d", i)
		err := batch.WriteFile(t.Context(), f.Place, name, func(emit batch.Emit) error {
			for _, r := range all[i*len(all)/n : (i+1)*len(all)/n] {
				if err := emit([]byte(r.key), []byte(r.value)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

func (f Fixture) try(ctx context.Context, job string, reducers int, inputs []string) (*batch.Result, error) {
	return f.Runner.Run(ctx, batch.Run{Job: Job(job), Conf: &batch.Conf{Job: job}, Inputs: inputs, Output: "output",
		Reducers: reducers, Progress: func(batch.Progress) {}})
}

// run runs a job and returns the records of each output file, by file name.
func (f Fixture) run(t *testing.T, job string, reducers int, inputs []string) (map[string][]record, *batch.Result) {
	t.Helper()
	result, err := f.try(t.Context(), job, reducers, inputs)
	if err != nil {
		t.Fatal(err)
	}
	names, err := batch.ListFiles(t.Context(), f.Place, "output")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]record{}
	for _, name := range names {
		var all []record
		for r, err := range batch.ReadFile(t.Context(), f.Place, name) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, record{string(r.Key), string(r.Value)})
		}
		files[strings.TrimPrefix(name, "output/")] = all
	}
	return files, result
}

// sortedRecords returns the records of all files, sorted. It checks that each file's keys are in order.
func sortedRecords(t *testing.T, files map[string][]record) (all []record) {
	t.Helper()
	for name, some := range files {
		if !slices.IsSortedFunc(some, func(a, b record) int { return strings.Compare(a.key, b.key) }) {
			t.Errorf("the keys of %s are not in order", name)
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, record.compare)
	return all
}

func checkSame(t *testing.T, got, want []record) {
	t.Helper()
	slices.SortFunc(want, record.compare)
	if !slices.Equal(got, want) {
		t.Errorf("got %d records, want %d, or their contents differ", len(got), len(want))
	}
}

func makeRecords(n int) (all []record) {
	for i := range n {
		all = append(all, record{fmt.Sprintf("key %d", i*i%97), fmt.Sprintf("value %d", i)})
	}
	return all
}

func sameRecords(t *testing.T, f Fixture) {
	all := makeRecords(2000)
	inputs := f.write(t, 3, all)
	for _, n := range []int{1, 2, 5} {
		files, result := f.run(t, "identity", n, inputs)
		checkSame(t, sortedRecords(t, files), slices.Clone(all))
		if len(files) > n {
			t.Errorf("%d files from %d reducers", len(files), n)
		}
		if in := result.Counters.Get("test", "in"); in != int64(len(all)) || result.Failed != 0 {
			t.Errorf("%d of %d records counted, %d attempts failed", in, len(all), result.Failed)
		}
	}
}

func wordCount(t *testing.T, f Fixture) {
	var all []record
	want := map[string]int{}
	for i := range 3000 {
		text := fmt.Sprintf("w%d w%d all", i%7, i%11)
		for _, w := range strings.Fields(text) {
			want[w]++
		}
		all = append(all, record{fmt.Sprint(i), text})
	}
	inputs := f.write(t, 2, all)
	var counted []record
	for w, n := range want {
		counted = append(counted, record{w, fmt.Sprint(n)})
	}
	for _, n := range []int{1, 2, 5} {
		files, _ := f.run(t, "words", n, inputs)
		checkSame(t, sortedRecords(t, files), counted)
	}
}

func emptyInput(t *testing.T, f Fixture) {
	inputs := f.write(t, 2, nil)
	for _, job := range []string{"identity", "map-only"} {
		if files, _ := f.run(t, job, 2, inputs); len(sortedRecords(t, files)) != 0 {
			t.Errorf("%s: output without input", job)
		}
	}
}

func noInput(t *testing.T, f Fixture) {
	for _, job := range []string{"identity", "map-only"} {
		if files, _ := f.run(t, job, 2, nil); len(sortedRecords(t, files)) != 0 {
			t.Errorf("%s: output without input", job)
		}
	}
}

// hugeSize is more than any valid page has; in short tests it is only more than all buffers.
func hugeSize() int {
	if testing.Short() {
		return 10 << 20
	}
	return 100 << 20
}

func hugeRecord(t *testing.T, f Fixture) {
	huge := strings.Repeat("0123456789abcdef\n\r\t\x00\xff", hugeSize()/21)
	all := []record{{"a", "before"}, {"huge", huge}, {"z", "behind"}}
	files, _ := f.run(t, "identity", 2, f.write(t, 1, all))
	checkSame(t, sortedRecords(t, files), all)
}

func everyByte(t *testing.T, f Fixture) {
	var all []record
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
		all = append(all, record{string([]byte{byte(i)}), "one"}, record{string([]byte{byte(i), byte(i)}), "two"},
			record{"key", string([]byte{byte(i)})}, record{string([]byte{0, byte(i), '\n'}),
				string(bytes.Repeat([]byte{byte(i)}, i))})
	}
	all = append(all, record{string(every), string(every)}, record{"empty", ""})
	inputs := f.write(t, 2, all)
	for _, job := range []string{"identity", "partition"} {
		files, _ := f.run(t, job, 3, inputs)
		if got := sortedRecords(t, files); job == "identity" {
			checkSame(t, got, all)
		}
	}
	files, _ := f.run(t, "map-only", 1, inputs)
	var got []record
	for _, some := range files {
		got = append(got, some...)
	}
	slices.SortFunc(got, record.compare)
	checkSame(t, got, all)
}

func mapOnly(t *testing.T, f Fixture) {
	all := makeRecords(500)
	for i := range all {
		if i%3 == 0 {
			all[i].key = "x" + all[i].key
		}
	}
	files, result := f.run(t, "map-only", 1, f.write(t, 3, all))
	var got []record
	for name, some := range files {
		for _, r := range some {
			want := "out"
			if r.key[0] == 'x' {
				want = "apart/x"
			}
			if path.Dir(name) != want {
				t.Fatalf("%q is in %s, not in %s", r.key, name, want)
			}
		}
		got = append(got, some...)
	}
	slices.SortFunc(got, record.compare)
	checkSame(t, got, all)
	if n := result.Counters.Get("test", "in"); n != int64(len(all)) {
		t.Errorf("%d of %d records counted", n, len(all))
	}
}

func partition(t *testing.T, f Fixture) {
	var all []record
	for i := range 300 {
		all = append(all, record{string([]byte{byte(i % 26), byte(i)}), "v"})
	}
	inputs := f.write(t, 3, all)
	for _, n := range []int{1, 2, 5} {
		files, _ := f.run(t, "partition", n, inputs)
		keys := map[string]bool{}
		for name, some := range files {
			for _, r := range some {
				want := int(r.key[0]) % n
				if r.value != fmt.Sprintf("%d of %d", want, n) || path.Base(name) != batch.PartName(want, batch.Sequence) {
					t.Fatalf("%q was reduced by %s into %s, not by %d of %d", r.key, r.value, name, want, n)
				}
				if keys[r.key] {
					t.Fatalf("%q was reduced twice", r.key)
				}
				keys[r.key] = true
			}
		}
	}
}

func flaky(t *testing.T, f Fixture) {
	all := makeRecords(300)
	inputs := f.write(t, 2, all)
	for _, n := range []int{1, 3} {
		files, result := f.run(t, "flaky", n, inputs)
		checkSame(t, sortedRecords(t, files), slices.Clone(all))
		if result.Failed < 2 {
			t.Errorf("%d attempts failed", result.Failed)
		}
		if in := result.Counters.Get("test", "in"); in != int64(len(all)) {
			t.Errorf("%d of %d records counted; failed attempts must not count", in, len(all))
		}
	}
}

func failing(t *testing.T, f Fixture) {
	_, err := f.try(t.Context(), "failing", 2, f.write(t, 1, makeRecords(10)))
	if err == nil {
		t.Fatal("a failed job returned no error")
	}
	if !strings.Contains(err.Error(), "failing") || !strings.Contains(err.Error(), errFails.Error()) {
		t.Errorf("the error does not name the job and the reason: %v", err)
	}
}

func firstValues(t *testing.T, f Fixture) {
	files, result := f.run(t, "first", 2, f.write(t, 2, makeRecords(2000)))
	keys := map[string]bool{}
	for _, r := range makeRecords(2000) {
		keys[r.key] = true
	}
	if got := sortedRecords(t, files); len(got) != len(keys) || result.Counters.Get("test", "first") != int64(len(keys)) {
		t.Errorf("%d of %d keys in the output, %d counted", len(got), len(keys), result.Counters.Get("test", "first"))
	}
}

func replaces(t *testing.T, f Fixture) {
	f.run(t, "identity", 5, f.write(t, 1, makeRecords(300)))
	few := makeRecords(3)
	files, _ := f.run(t, "identity", 1, f.write(t, 1, few))
	checkSame(t, sortedRecords(t, files), few)
}

func document(t *testing.T, f Fixture) {
	var all []record
	for i := range 100 {
		value := xmlform.Append([]byte{byte(batch.KindPage)}, &xmlform.Record{URL: fmt.Sprintf("http://a.test/%d", i),
			Fetched: time.Unix(1, 0), Content: "a < b & \x00"})
		all = append(all, record{fmt.Sprint(i), string(value)})
	}
	if _, err := f.try(t.Context(), "xml", 1, f.write(t, 2, all)); err != nil {
		t.Fatal(err)
	}
	names, err := batch.ListFiles(t.Context(), f.Place, "output")
	if err != nil {
		t.Fatal(err)
	}
	pages, indexed := 0, 0
	for _, name := range names {
		data, err := place.ReadFile(t.Context(), f.Place, name)
		if err != nil {
			t.Fatal(err)
		}
		if path.Ext(name) == ".jsonl" {
			for line := range bytes.Lines(data) {
				indexLine(t, f.Place, path.Dir(name), line)
				indexed++
			}
			continue
		}
		var got struct {
			Pages []struct {
				URL string `xml:"url"`
			} `xml:"page"`
		}
		if err := xml.Unmarshal(data, &got); err != nil || path.Ext(name) != ".xml" {
			t.Errorf("%s: %v", name, err)
		}
		pages += len(got.Pages)
	}
	if pages != len(all) || indexed != pages {
		t.Errorf("%d of %d pages, %d in indexes", pages, len(all), indexed)
	}
}

// indexLine checks that an index line points to the record of its URL.
func indexLine(t *testing.T, p place.Place, dir string, line []byte) {
	t.Helper()
	e, err := batch.ParseEntry(line)
	if err != nil {
		t.Fatal(err)
	}
	src, err := p.Open(t.Context(), path.Join(dir, e.Part), e.Offset, e.Length)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	data, err := io.ReadAll(src)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := xmlform.Parse(data); err != nil || r.URL != e.URL {
		t.Errorf("record of %s: got %q: %v", e.URL, data, err)
	}
}

func canceled(t *testing.T, f Fixture) {
	inputs := f.write(t, 1, makeRecords(10))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.try(ctx, "identity", 1, inputs); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
