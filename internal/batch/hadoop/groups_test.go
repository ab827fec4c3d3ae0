package hadoop

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"kumo/internal/base/extsort"
	"kumo/internal/batch/stream"
)

func piped(t *testing.T, records ...string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := &coder{Writer: stream.NewWriter(&b)}
	for _, r := range records {
		key, value, _ := strings.Cut(r, "=")
		if err := w.write(code([]byte("abc")), []byte(key), []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestCountersAreNoRecords(t *testing.T) {
	var b bytes.Buffer
	w := &coder{Writer: stream.NewWriter(&b)}
	for _, r := range [][3]string{{"cnt", "m-00000", "first"}, {"abc", "k", "1"}, {"abc", "k", "2"}, {"cnt", "m-00001",
		"last"}} {
		if err := w.write(code([]byte(r[0])), []byte(r[1]), []byte(r[2])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	var told []string
	groups, failed := extsort.Groups(&codedReader{in: stream.NewReader(&b), countersCode: code([]byte("cnt")),
		counters: func(key, text []byte) error {
			told = append(told, string(key)+"="+string(text))
			return nil
		}})
	n := 0
	for _, values := range groups {
		for range values {
			n++
		}
	}
	if err := drain(groups, failed); err != nil || n != 2 || strings.Join(told, " ") != "cntm-00000=first cntm-00001=last" {
		t.Errorf("%d records, counters %q: %v", n, told, err)
	}
}

func TestGroups(t *testing.T) {
	for _, take := range []int{0, 1, 2, 9} {
		in := stream.NewReader(piped(t, "a=1", "a=2", "a=3", "b=", "c=4", "c=5"))
		groups, failed := extsort.Groups(&codedReader{in: in, strip: codeLen})
		var got []string
		for key, values := range groups {
			text := string(key) + ":"
			n := 0
			for v := range values {
				if n == take {
					break
				}
				n++
				text += string(v)
			}
			got = append(got, text)
		}
		want := map[int]string{0: "a: b: c:", 1: "a:1 b: c:4", 2: "a:12 b: c:45", 9: "a:123 b: c:45"}[take]
		if strings.Join(got, " ") != want || drain(groups, failed) != nil {
			t.Errorf("%d values each: %q", take, got)
		}
	}
	in := &codedReader{in: stream.NewReader(piped(t, "a=1", "b=2", "c=3"))}
	groups, failed := extsort.Groups(in)
	for range groups {
		break
	}
	if err := drain(groups, failed); err != nil {
		t.Error(err)
	}
	if _, _, err := in.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("something is left after all was drained: %v", err)
	}
}
