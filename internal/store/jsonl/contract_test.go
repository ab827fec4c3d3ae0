package jsonl

import (
	"os"
	"path/filepath"
	"testing"

	"kumo/internal/page"
	"kumo/internal/store"
	"kumo/internal/store/storetest"
	"kumo/internal/vfs"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(disk vfs.FS, dir string, marks []store.Mark) (store.Store, error) {
		return Open(disk, Config{Dir: dir}, marks)
	})
}

func TestContractOfTexts(t *testing.T) {
	storetest.Run(t, func(disk vfs.FS, dir string, marks []store.Mark) (store.Store, error) {
		return OpenTexts(disk, Config{Dir: dir}, marks)
	})
}

func TestTexts(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenTexts(vfs.OS, Config{Dir: dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rec := storetest.Record(1)
	rec.Text = nil
	if err := s.Put(rec); err != nil {
		t.Fatal(err)
	}
	rec.Text = &page.MainText{Title: "T", Headline: "H", Author: "A", Published: "2026-01-02", Lang: "de",
		Text: "Eins.\nZwei."}
	if err := s.Put(rec); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Mark(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "text.jsonl"))
	want := `{"url":"https://example.org/page-00001/","time":"2026-11-21T03:12:14.123Z","lang":"de","title":"T","headline":"H",` +
		`"author":"A","published":"2026-01-02","text":"Eins.\nZwei."}` + "\n"
	if err != nil || string(got) != want {
		t.Errorf("%s, want %s (%v)", got, want, err)
	}
}
