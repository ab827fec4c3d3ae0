package history

import (
	"bytes"
	"reflect"
	"testing"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
	"kumo/internal/state/journal/memory"
)

func FuzzReadRecord(f *testing.F) {
	f.Add([]byte{})
	f.Add(appendRecord(nil, &Record{Host: "a"}))
	f.Add(appendRecord(nil, &Record{Host: "a.example:8080", URLs: []URL{{Hash: HashOf("u"), Data: []byte("u")},
		{Hash: HashOf("v"), Done: true}, {}}}))
	f.Add([]byte("\x01a\xff\xff\xff\xff\x0f"))
	f.Add(appendRecord(nil, &Record{Host: "a", URLs: []URL{{Visit: 300, Scheduled: true, Data: []byte("u")}, {Visit: 7},
		{Visit: 1 << 40, Done: true}, {Data: []byte("v")}, {Done: true}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := readRecord(b, false)
		if r2, err2 := readRecord(b, true); err2 == nil && r2.revisits() {
			r, err = r2, nil
		}
		if err != nil {
			return
		}
		again, err := readRecord(appendRecord(nil, &r), r.revisits())
		if err != nil {
			t.Fatalf("%+v is written, and not read: %v", r, err)
		}
		for i := range r.URLs {
			for _, u := range []*URL{&r.URLs[i], &again.URLs[i]} {
				if len(u.Data) == 0 {
					u.Data = nil
				}
			}
		}
		if !reflect.DeepEqual(r, again) {
			t.Fatalf("%+v became %+v", r, again)
		}
		if size := len(r.URLs)*(HashSize+1) + len(r.Host); size > len(b) {
			t.Fatalf("%d bytes of %d", size, len(b))
		}
	})
}

// FuzzReplay replays any batch: it is applied or refused, and an applied one can be read.
func FuzzReplay(f *testing.F) {
	record := func(r Record) []byte {
		w := varint.Writer{batchVersion, entryRecord}
		w.Bytes(appendRecord(nil, &r))
		return w
	}
	f.Add(record(Record{Host: "a", URLs: []URL{{Data: []byte("x")}, {Hash: Hash{1}, Done: true}}}))
	visits := varint.Writer{batchVersion, entryVisits}
	visits.Bytes(appendRecord(nil, &Record{Host: "a", URLs: []URL{{Visit: 9, Scheduled: true, Data: []byte("x")}}}))
	f.Add([]byte(visits))
	f.Add([]byte{batchVersion, entryRecord, 5})
	f.Add([]byte{batchVersion + 1})
	f.Fuzz(func(t *testing.T, batch []byte) {
		if len(batch) == 0 {
			return // impossible in a journal
		}
		j := memory.New()
		check(t, j.Append(batch))
		d, err := Open(nothing{}, "", j, Config{Key: keyOf})
		if err != nil {
			return
		}
		before := dump(t, d, 10)
		check(t, d.replayBatch(batch)) // replaying it twice makes no difference
		if dump(t, d, 10) != before {
			t.Fatal("the batch, taken in twice, says something else")
		}
		check(t, d.Close())
	})
}

// FuzzDisk reads any key and values on disk.
func FuzzDisk(f *testing.F) {
	f.Add(append(appendHost(nil, keyOf("a"), "a"), make([]byte, HashSize)...), []byte{}, []byte{dispatched, 'n'})
	f.Add([]byte{}, []byte{scheduledAgain, 9, 'n'}, []byte{dispatchedAgain, 9, 'n'})
	f.Add([]byte{}, []byte{doneAgain, 3}, []byte{scheduledAgain, 9})
	f.Fuzz(func(t *testing.T, key, a, b []byte) {
		if p, ok := readPlace(key); ok {
			if again := append(appendHost(nil, xor.ID(key), string(p.name)), p.hash[:]...); !bytes.Equal(again, key) {
				t.Fatalf("%x became %x", key, again)
			}
		}
		v, okA := readValue(a)
		w, okB := readValue(b)
		if !okA || !okB {
			return
		}
		for _, folded := range [][]byte{mergeValues(bytes.Clone(a), b), mergeValues(bytes.Clone(b), a)} {
			if one, ok := readValue(folded); !ok || v.advances(&one) || w.advances(&one) {
				t.Fatalf("%x and %x are %+v", a, b, one)
			}
		}
	})
}
