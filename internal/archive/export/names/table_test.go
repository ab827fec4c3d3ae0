package names

import (
	"path/filepath"
	"slices"
	"testing"
)

func TestTable(t *testing.T) {
	table := NewTable(filepath.Join(t.TempDir(), "sort"))
	defer func() {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	}()
	wishes := []struct{ url, name, want string }{
		{"http://a.test/A", "a.test/A.md", "a.test/A.md"},
		{"http://a.test/a", "a.test/a.md", WithHash("a.test/a.md", "http://a.test/a")},
		{"http://a.test/b", "a.test/b.md", WithHash("a.test/b.md", "http://a.test/b")}, // the name of a folder
		{"http://a.test/b.md/c", "a.test/b.md/c.md", "a.test/b.md/c.md"},
		{"http://a.test/c", "a.test/c.md", "a.test/c.md"},
	}
	var want, got []string
	for _, w := range wishes {
		if err := table.Add(w.name, w.url); err != nil {
			t.Fatal(err)
		}
		want = append(want, w.want)
	}
	if err := table.Assign(t.Context(), func(name string) error { got = append(got, name); return nil }); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for _, w := range wishes {
		if name := table.Name(w.name, w.url); name != w.want {
			t.Errorf("%s is %s", w.url, name)
		}
	}
}
