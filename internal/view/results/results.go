// Package results reads and writes the results of experiments in folders. A folder contains tables as CSV, plots as
// SVG, and a file that describes them. That file names the subject, the command that produced the results, and a
// paper's statements with the measured values.
//
// Readers do not trust the files: all sizes are bounded, and no name leads out of the folder.
package results

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Name is the name of the file that describes a folder.
const Name = "experiment.json"

// An Experiment contains the results of one command. The same command produces the same results, byte for byte.
type Experiment struct {
	Experiment string      `json:"experiment"`
	About      string      `json:"about,omitempty"` // one line
	Command    string      `json:"command"`
	Version    string      `json:"kumo,omitempty"`
	Statements []Statement `json:"statements"` // statements of the paper
	Tables     []string    `json:"tables"`     // names of CSV files
	Pictures   []Picture   `json:"pictures"`
	Printed    string      `json:"printed,omitempty"` // output of the command
}

// A Statement is a statement of a paper, with the measured result.
type Statement struct {
	Of        string `json:"of,omitempty"` // the runs it is compared with: experiment 1, mode kumo
	Seen      bool   `json:"seen"`
	Statement string `json:"statement"`
	Measured  string `json:"measured,omitempty"`
	Why       string `json:"why,omitempty"` // why it was not reproduced
}

// A Picture is an SVG file.
type Picture struct {
	File  string `json:"file"`
	Title string `json:"title,omitempty"`
}

// Limits for reading.
const (
	maxJSON    = 4 << 20  // bytes
	maxEntries = 200      // statements, tables, pictures
	MaxFile    = 32 << 20 // bytes of a picture
	maxPart    = 8 << 20  // bytes of a table per read
	maxFolders = 1000     // entries of a folder to inspect
)

// Write writes the description into a folder.
func (e *Experiment) Write(dir string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(e); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, Name), b.Bytes(), 0o666)
}

// Read reads the description of a folder. If it contains no experiment, the error is fs.ErrNotExist.
func Read(dir string) (*Experiment, error) {
	data, err := ReadFile(dir, Name, maxJSON)
	if err != nil {
		return nil, err
	}
	e := &Experiment{}
	if err := json.Unmarshal(data, e); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, Name), err)
	}
	if len(e.Statements) > maxEntries || len(e.Tables) > maxEntries || len(e.Pictures) > maxEntries {
		return nil, fmt.Errorf("%s: more than %d statements, tables or pictures", filepath.Join(dir, Name), maxEntries)
	}
	return e, nil
}

// ReadFile reads a file directly in a folder, of at most most bytes.
func ReadFile(dir, name string, most int64) ([]byte, error) {
	f, err := open(dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s: more than %d bytes", filepath.Join(dir, name), most)
	}
	return data, err
}

// open opens a file directly in a folder. Symbolic links cannot lead out of it.
func open(dir, name string) (*os.File, error) {
	if name == "" || name != filepath.Base(name) || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") {
		return nil, fmt.Errorf("%q: %w", name, fs.ErrNotExist)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // an open file stays open
	if info, err := root.Stat(name); err != nil || !info.Mode().IsRegular() {
		if err == nil {
			err = fmt.Errorf("%s: %w", name, fs.ErrNotExist)
		}
		return nil, err
	}
	return root.Open(name)
}

// Find returns the folders with an experiment: a folder itself and its direct subfolders, sorted.
func Find(dir string) (dirs []string, err error) {
	if has(dir) {
		dirs = append(dirs, dir)
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	all, err := f.ReadDir(maxFolders)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	names := []string{}
	for _, e := range all {
		if at := filepath.Join(dir, e.Name()); e.IsDir() && has(at) {
			names = append(names, at)
		}
	}
	slices.Sort(names)
	return append(dirs, names...), err
}

func has(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, Name))
	return err == nil && info.Mode().IsRegular()
}

// Rows is a part of a table.
type Rows struct {
	Columns []string
	Rows    [][]string
	Next    int64 // cursor of the next part; 0: this is the last part
}

// ErrCursor is the error for a position in a table where no row begins.
var ErrCursor = errors.New("not a cursor that a part of this table returned")

// Table reads up to n rows of a CSV table, from the end of an earlier part; 0 is the first row.
func Table(dir, name string, from int64, n int) (*Rows, error) {
	f, err := open(dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	wrong := func(err error) error { return fmt.Errorf("%s: %w", filepath.Join(dir, name), err) }
	head := reader(f, 0)
	t := &Rows{Rows: [][]string{}}
	if t.Columns, err = head.Read(); errors.Is(err, io.EOF) {
		return t, nil
	}
	if err != nil {
		return nil, wrong(err)
	}
	if from == 0 {
		from = head.InputOffset()
	} else if before := make([]byte, 1); from < head.InputOffset() || readAt(f, before, from-1) != nil ||
		before[0] != '\n' {
		return nil, ErrCursor
	}
	info, err := f.Stat()
	if err != nil {
		return nil, wrong(err)
	}
	rows := reader(f, from)
	for {
		at := from + rows.InputOffset()
		row, err := rows.Read()
		switch {
		case rows.InputOffset() >= maxPart && info.Size()-from > maxPart: // the row may continue after the part
			if t.Next = at; len(t.Rows) == 0 {
				return nil, wrong(fmt.Errorf("row of more than %d bytes", maxPart))
			}
			return t, nil
		case errors.Is(err, io.EOF):
			return t, nil
		case err != nil:
			return nil, wrong(err)
		case len(t.Rows) == n:
			t.Next = at
			return t, nil
		}
		t.Rows = append(t.Rows, row)
	}
}

func readAt(f *os.File, b []byte, at int64) error {
	_, err := f.ReadAt(b, at)
	return err
}

// reader reads CSV from an offset, up to a limit.
func reader(f *os.File, from int64) *csv.Reader {
	r := csv.NewReader(io.NewSectionReader(f, from, maxPart))
	r.FieldsPerRecord = -1
	return r
}
