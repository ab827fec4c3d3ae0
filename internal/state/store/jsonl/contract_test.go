package jsonl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
	"kumo/internal/state/store/storetest"
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
		Text: "Eins.\nZwei.", Kind: "article", Comments: "Drei."}
	if err := s.Put(rec); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Mark(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "text.jsonl"))
	want := `{"url":"https://example.org/page-00001/","time":"2026-11-21T03:12:14.123Z","lang":"de","title":"T","headline":"H",` +
		`"author":"A","published":"2026-01-02","kind":"article","text":"Eins.\nZwei.","comments":"Drei."}` + "\n"
	if err != nil || string(got) != want {
		t.Errorf("%s, want %s (%v)", got, want, err)
	}
}

func TestContractOfFields(t *testing.T) {
	storetest.Run(t, func(disk vfs.FS, dir string, marks []store.Mark) (store.Store, error) {
		return OpenFields(disk, Config{Dir: dir}, marks)
	})
}

func TestFields(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenFields(vfs.OS, Config{Dir: dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rec := storetest.Record(1)
	rec.Fields = []page.Fields{{Rule: "a", Values: []byte(`{"x":[1,"y"]}`)}, {Rule: "b", Values: []byte(`{"z":{}}`)}}
	if err := s.Put(rec); err != nil {
		t.Fatal(err)
	}
	rec.Fields, rec.Location = rec.Fields[:1], page.Location{File: "a.warc.gz", Offset: 815}
	if err := s.Put(rec); err != nil {
		t.Fatal(err)
	}
	rec.Fields = nil
	if err := s.Put(rec); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Mark(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, FieldsName))
	const head = `{"url":"https://example.org/page-00001/","rule":"`
	const time = `","time":"2026-11-21T03:12:14.123Z",`
	want := head + "a" + time + `"fields":{"x":[1,"y"]}}` + "\n" + head + "b" + time + `"fields":{"z":{}}}` + "\n" +
		head + "a" + time + `"warc":"a.warc.gz","offset":815,"fields":{"x":[1,"y"]}}` + "\n"
	if err != nil || string(got) != want {
		t.Errorf("%s, want %s (%v)", got, want, err)
	}
	for line := range strings.Lines(want) {
		if f, err := ParseFields([]byte(line)); err != nil || f.URL != rec.URL {
			t.Errorf("%s is read as %+v (%v)", line, f, err)
		}
	}
}
