package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"kumo/internal/lab/sim/experiments"
	"kumo/internal/view/results"
)

// A Folder receives an experiment's files, and a description of them. Without a Dir nothing is written.
type Folder struct {
	Dir  string
	made results.Experiment
}

// Begin starts the description of an experiment. Text printed to the returned writer is part of it, and goes to w.
func (f *Folder) Begin(made results.Experiment, w io.Writer) *Output {
	f.made = made
	f.made.Statements, f.made.Tables, f.made.Pictures = []results.Statement{}, []string{}, []results.Picture{}
	return &Output{Writer: w}
}

// End writes the description.
func (f *Folder) End(out *Output) error {
	f.made.Printed = out.printed.String()
	if err := f.made.Write(f.Dir); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// An Output records what an experiment prints.
type Output struct {
	io.Writer
	printed bytes.Buffer
}

// maxPrinted bounds the recorded text, in bytes.
const maxPrinted = 256 << 10

func (o *Output) Write(b []byte) (int, error) {
	o.printed.Write(b[:min(len(b), max(maxPrinted-o.printed.Len(), 0))])
	return o.Writer.Write(b)
}

// Prepare creates the folder and tests that it is writable, before the experiment runs.
func (f *Folder) Prepare() error {
	if f.Dir == "" {
		return nil
	}
	if err := os.MkdirAll(f.Dir, 0o777); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	probe, err := os.CreateTemp(f.Dir, ".kumo-*")
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

func (f *Folder) write(name string, write func(io.Writer) error) error {
	if f.Dir == "" {
		return nil
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(f.Dir, name), b.Bytes(), 0o666); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// results writes tables as CSV, and draws pictures as SVG.
func (f *Folder) results(tables []experiments.Table, pictures []experiments.NamedPicture) error {
	for _, t := range tables {
		f.made.Tables = append(f.made.Tables, t.Name+".csv")
		if err := f.write(t.Name+".csv", t.Write); err != nil {
			return err
		}
	}
	for _, p := range pictures {
		f.made.Pictures = append(f.made.Pictures, results.Picture{File: p.Name + ".svg", Title: p.Title})
		if err := f.write(p.Name+".svg", func(w io.Writer) error { return p.SVG(w, p.Title) }); err != nil {
			return err
		}
	}
	return nil
}
