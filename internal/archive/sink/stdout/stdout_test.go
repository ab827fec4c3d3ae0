package stdout

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"kumo/internal/archive/sink"
	"kumo/internal/archive/sink/sinktest"
)

func TestLines(t *testing.T) {
	var out strings.Builder
	s := Open(&out)
	if err := s.Put(t.Context(), []sink.Record{sinktest.Record(0), sinktest.Record(1)}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	var got sink.Record
	if err := json.Unmarshal([]byte(lines[1]), &got); err != nil || got.URL != sinktest.Record(1).URL || len(lines) != 3 {
		t.Errorf("%v: %q", err, lines)
	}
}

func TestNobodyReads(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	if err := Open(w).Put(t.Context(), []sink.Record{sinktest.Record(0)}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}
