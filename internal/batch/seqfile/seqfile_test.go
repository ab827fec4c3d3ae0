package seqfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/file"
	"kumo/internal/base/vfs"
)

type record struct{ key, value []byte }

func write(t testing.TB, all []record) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if err := w.Append(r.key, r.value); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(r *Reader) (all []record, err error) {
	for {
		key, value, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, record{bytes.Clone(key), bytes.Clone(value)})
	}
}

func same(t *testing.T, got, want []record) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d records came back of %d", len(got), len(want))
		return
	}
	for i := range got {
		if !bytes.Equal(got[i].key, want[i].key) || !bytes.Equal(got[i].value, want[i].value) {
			t.Fatalf("record %d is %.50q %.50q, not %.50q %.50q", i, got[i].key, got[i].value, want[i].key, want[i].value)
		}
	}
}

func samples() []record {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	all := []record{{}, {key: every}, {value: every}, {[]byte("k"), bytes.Repeat(every, 8000)}, {[]byte("escape"),
		[]byte(markEscape)}}
	for n := range 300 { // lengths around the boundaries of their encodings
		all = append(all, record{[]byte(fmt.Sprint(n)), make([]byte, n)})
	}
	return append(all, record{[]byte("last"), make([]byte, 70_000)})
}

func TestRecordsComeBack(t *testing.T) {
	huge := 100 << 20
	if testing.Short() {
		huge = 10 << 20
	}
	for name, all := range map[string][]record{"none": nil, "one": {{[]byte("k"), []byte("v")}}, "many": samples(),
		"huge": {{[]byte("a"), bytes.Repeat([]byte("0123456789abcdef"), huge/16)}, {[]byte("b"), nil}}} {
		t.Run(name, func(t *testing.T) {
			r, err := NewReader(bytes.NewReader(write(t, all)))
			if err != nil {
				t.Fatal(err)
			}
			got, err := read(r)
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, all)
		})
	}
}

func TestStretchesHaveEachBlockOnce(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	var all []record
	for i := range 3000 {
		value := make([]byte, dice.IntN(4000))
		for j := range value {
			value[j] = byte(dice.Uint32())
		}
		all = append(all, record{fmt.Appendf(nil, "%06d", i), value})
	}
	data := write(t, all)
	p, err := file.Open(t.TempDir(), vfs.OS)
	if err != nil {
		t.Fatal(err)
	}
	if err := place.WriteFile(t.Context(), p, "f", data); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		var got []record
		for from := int64(0); from < int64(len(data)); {
			to := from + 1 + dice.Int64N(int64(len(data)/3))
			r, err := Open(t.Context(), p, "f", from, to)
			if err != nil {
				t.Fatal(err)
			}
			some, err := read(r)
			if err := errors.Join(err, r.Close()); err != nil {
				t.Fatal(err)
			}
			got = append(got, some...)
			from = to
		}
		same(t, got, all)
	}
}

func TestAFileThatWasCutIsDamaged(t *testing.T) {
	var all []record
	for i := range 4 { // several blocks that compress well
		all = append(all, record{fmt.Append(nil, i), bytes.Repeat([]byte{byte(i)}, blockSize*2/3)})
	}
	data := write(t, all)
	r, err := NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	ends := map[int64]bool{} // ends of blocks, where truncation is not detectable
	for {
		if r.records == 0 {
			ends[r.at] = true
		}
		if _, _, err := r.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if len(ends) < 3 {
		t.Fatalf("%d blocks", len(ends)-1)
	}
	for n := range data {
		r, err := NewReader(bytes.NewReader(data[:n]))
		if err != nil {
			continue // in the header
		}
		if _, err = read(r); !ends[int64(n)] && !errors.Is(err, ErrDamaged) || ends[int64(n)] && err != nil {
			t.Fatalf("cut at byte %d of %d: %v", n, len(data), err)
		}
	}
}

func TestAnotherFileIsRefused(t *testing.T) {
	whole := write(t, samples())
	for name, data := range map[string][]byte{"empty": nil, "text": []byte("<html>"), "another version": append([]byte(
		"SEQ\x05"), whole[4:]...), "its head alone cut": whole[:40]} {
		if _, err := NewReader(bytes.NewReader(data)); err == nil {
			t.Errorf("%s is read", name)
		}
	}
	for _, n := range []int{len(whole) - 1, len(whole) / 2, 150} {
		r, err := NewReader(bytes.NewReader(whole[:n]))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := read(r); err == nil {
			t.Errorf("%d bytes of %d are read without an error", n, len(whole))
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(write(f, samples()[:20]))
	f.Add(write(f, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := NewReader(bytes.NewReader(data))
		if err != nil {
			return
		}
		all, err := read(r)
		if err != nil {
			return
		}
		again, err := NewReader(bytes.NewReader(write(t, all)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(again)
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, all)
	})
}

func BenchmarkWriteAndRead(b *testing.B) {
	value := bytes.Repeat([]byte("<p>some text that is like other text, with a <a href=/link/1234>link</a></p>\n"), 400)
	b.SetBytes(int64(1000 * len(value)))
	for b.Loop() {
		var buf bytes.Buffer
		w, _ := NewWriter(&buf)
		for i := range 1000 {
			if err := w.Append(fmt.Appendf(nil, "de http://a.test/%d", i), value); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		r, err := NewReader(&buf)
		if err != nil {
			b.Fatal(err)
		}
		for range 1000 {
			if _, _, err := r.Next(); err != nil {
				b.Fatal(err)
			}
		}
	}
}
