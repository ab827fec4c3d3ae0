package history

import (
	"bytes"
	"reflect"
	"testing"

	"kumo/internal/journal/memory"
	"kumo/internal/varint"
)

func FuzzReadRecord(f *testing.F) {
	f.Add([]byte{})
	f.Add(AppendRecord(nil, &Record{Host: "a"}))
	f.Add(AppendRecord(nil, &Record{Host: "a.example:8080", Target: "n~1", Assigned: 1 << 31, URLs: []URL{
		{Hash: HashOf("u"), At: 1700000000, Data: []byte("u")}, {Hash: HashOf("v"), Done: true}, {At: 0}}}))
	f.Add([]byte("\x01a\x00\x00\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, rest, err := ReadRecord(b)
		if err != nil {
			return
		}
		again, left, err := ReadRecord(AppendRecord(nil, &r))
		if err != nil || len(left) > 0 {
			t.Fatalf("%+v is written, and not read: %v", r, err)
		}
		if len(r.URLs) == 0 {
			r.URLs, again.URLs = nil, nil
		}
		for i := range r.URLs {
			for _, u := range []*URL{&r.URLs[i], &again.URLs[i]} {
				if len(u.Data) == 0 {
					u.Data = nil
				}
			}
		}
		if !reflect.DeepEqual(r, again) || !bytes.HasSuffix(b, rest) {
			t.Fatalf("%+v became %+v", r, again)
		}
		if size := len(r.URLs)*(HashSize+1) + len(r.Host); size > len(b) {
			t.Fatalf("%d bytes of %d", size, len(b))
		}
	})
}

// FuzzReplay has a journal with any batch: it is taken in or refused, and what was taken in can be read.
func FuzzReplay(f *testing.F) {
	record := func(r Record) []byte {
		w := varint.Writer{batchVersion, entryRecord}
		w.Bytes(AppendRecord(nil, &r))
		return w
	}
	f.Add(record(Record{Host: "a", Target: "n", Assigned: 3, URLs: []URL{
		{At: 4, Data: []byte("x")}, {Hash: Hash{1}, Done: true}}}))
	f.Add([]byte{batchVersion, entryRecord, 5})
	f.Add([]byte{2})
	f.Fuzz(func(t *testing.T, batch []byte) {
		if len(batch) == 0 {
			return // no journal has that
		}
		j := memory.New()
		check(t, j.Append(batch))
		d, err := Open(nothing{}, "", j, Config{Self: self, Key: keyOf})
		if err != nil {
			return
		}
		before := dump(t, d, 10)
		check(t, d.replayBatch(batch)) // what is said twice is said once
		if dump(t, d, 10) != before {
			t.Fatal("the batch, taken in twice, says something else")
		}
		check(t, d.Close())
	})
}

// FuzzDisk has any key and values on the disk.
func FuzzDisk(f *testing.F) {
	f.Add(appendHost(nil, self, "a"), []byte{}, []byte{5, 'n'})
	f.Fuzz(func(t *testing.T, key, a, b []byte) {
		if p, ok := readPlace(key); ok {
			again := appendHost(nil, p.id(), string(p.name))
			if p.url {
				again = append(again, p.hash[:]...)
			}
			if !bytes.Equal(again, key) {
				t.Fatalf("%x became %x", key, again)
			}
		}
		v, okA := readValue(a)
		w, okB := readValue(b)
		if !okA || !okB {
			return
		}
		one, _ := readValue(fold(bytes.Clone(a), b))
		two, _ := readValue(fold(bytes.Clone(b), a))
		if one.more(two) || two.more(one) || v.more(one) || w.more(one) {
			t.Fatalf("%x and %x are %+v and %+v", a, b, one, two)
		}
	})
}
