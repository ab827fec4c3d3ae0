package seen

import (
	"errors"
	"slices"
	"testing"
	"time"

	"kumo/internal/base/vfs"
)

func TestEachDigestComesOnceWithItsLastRecord(t *testing.T) {
	d, err := OpenDigests(vfs.OS, t.TempDir(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	put := func(first byte, id string) {
		d.Put([20]byte{first}, Ref{URL: "http://a/", Time: time.Unix(1, 0).UTC(), ID: id})
	}
	for _, id := range []string{"1", "2"} { // each on disk
		put(7, id)
		put(id[0], id)
		d.Freeze(0)
		if err := d.Merge(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	put(7, "frozen")
	put(3, "frozen")
	d.Freeze(0)
	put(3, "active")
	var got []string
	err = d.Each(func(digest [20]byte, r Ref) error {
		got = append(got, string('0'+digest[0]%10)+" "+r.ID)
		return nil
	})
	if want := []string{"3 active", "7 frozen", "9 1", "0 2"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q %v, want %q", got, err, want)
	}
	if err := errors.Join(d.Verify(t.Context()), d.Close()); err != nil {
		t.Error(err)
	}
}
