package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kumo/internal/base/vfs"
)

func TestLinesComeWithTheirPlaces(t *testing.T) {
	long := strings.Repeat("x", 700_000) // more than twice the reader's buffer
	name := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(name, []byte("a\n\n"+long+"\nb\r\ntorn"), 0o600); err != nil {
		t.Fatal(err)
	}
	var lines []string
	var places []int64
	torn, err := EachLineOf(vfs.OS, name, func(line []byte, at int64) error {
		lines, places = append(lines, string(line)), append(places, at)
		return nil
	})
	if err != nil || torn != 4 || !slices.Equal(lines, []string{"a", "", long, "b\r"}) ||
		!slices.Equal(places, []int64{0, 2, 3, 700_004}) {
		t.Errorf("%d lines at %v, %d bytes torn, %v", len(lines), places, torn, err)
	}
	if torn, err := EachLineOf(vfs.OS, name+"none", nil); torn != 0 || err != nil {
		t.Errorf("of a file that is not there: %d, %v", torn, err)
	}
	enough := errors.New("enough")
	n := 0
	if _, err := EachLineOf(vfs.OS, name, func([]byte, int64) error { n++; return enough }); !errors.Is(err, enough) ||
		n != 1 {
		t.Errorf("%v after %d lines", err, n)
	}
	if torn, err := EachLine(strings.NewReader(long), nil); torn != int64(len(long)) || err != nil {
		t.Errorf("one long torn line: %d, %v", torn, err)
	}
}

// TestLongLines tests that the memory of a line is bounded, and that offsets after it are right.
func TestLongLines(t *testing.T) {
	const most = 300 << 10 // more than the reader's buffer
	for _, tail := range []string{"", strings.Repeat("t", most+5)} {
		var lines []string
		var places []int64
		text := "a\n" + strings.Repeat("x", most) + "\n" + strings.Repeat("y", 3*most) + "\nb\n" + tail
		torn, err := eachLine(strings.NewReader(text), most, func(line []byte, at int64) error {
			lines, places = append(lines, string(line)), append(places, at)
			return nil
		})
		want := []string{"a", strings.Repeat("x", most), strings.Repeat("y", most), "b"}
		if err != nil || torn != int64(len(tail)) || !slices.Equal(lines, want) ||
			!slices.Equal(places, []int64{0, 2, most + 3, 4*most + 4}) {
			t.Errorf("%d lines at %v, %d bytes torn, %v", len(lines), places, torn, err)
		}
	}
}
