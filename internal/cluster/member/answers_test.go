package member

import (
	"slices"
	"testing"
)

func FuzzAnswers(f *testing.F) {
	f.Add(AppendAnswer(nil, 7, []int{0, 3, 900}))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _, _ = ReadAnswer(data) })
}

func TestAnswers(t *testing.T) {
	for _, refused := range [][]int{nil, {0}, {5}, {0, 1, 2}, {3, 300, 70_000}} {
		n, got, err := ReadAnswer(AppendAnswer(nil, 1<<60, refused))
		if n != 1<<60 || !slices.Equal(got, refused) || err != nil {
			t.Errorf("%v came back as %v of %d (%v)", refused, got, n, err)
		}
	}
	for _, bad := range []string{"", "\xff", "\x01\xff", "\x01\xff\xff\xff\xff\x0f",
		"\x01\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		if _, _, err := ReadAnswer([]byte(bad)); err == nil {
			t.Errorf("%q is an answer", bad)
		}
	}
}
