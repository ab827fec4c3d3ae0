package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"kumo/internal/base/vfs"
	"kumo/internal/cluster/strategy/balance/model"
)

type sampleForm struct {
	write func(io.Writer, []model.Sample) error
	read  func(io.Reader) iter.Seq2[model.Sample, error]
}

func sampleFormOf(file string) (sampleForm, error) {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".csv":
		return sampleForm{model.WriteCSV, model.ReadCSV}, nil
	case ".jsonl":
		return sampleForm{model.WriteJSON, model.ReadJSON}, nil
	}
	return sampleForm{}, usagef("%s: a file of samples is called .csv or .jsonl", file)
}

// importSamples reads a file of samples, and returns the last of them, most at most, and how many there are.
func importSamples(file string, most int) (last []model.Sample, all int, err error) {
	form, err := sampleFormOf(file)
	if err != nil {
		return nil, 0, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	for s, err := range form.read(f) {
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", file, err)
		}
		if all++; len(last) == 2*most { // now and then, so that reading stays cheap
			last = append(last[:0], last[most:]...)
		}
		last = append(last, s)
	}
	return last[max(0, len(last)-most):], all, nil
}

// exportSamples writes a file of samples, in place of one that may be there; it appears when it is whole.
func exportSamples(file string, samples []model.Sample) (err error) {
	form, err := sampleFormOf(file)
	if err != nil {
		return err
	}
	part := file + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := vfs.OS.Append(part)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	err = errors.Join(form.write(w, samples), w.Flush(), f.Sync())
	if err = errors.Join(err, f.Close()); err == nil {
		err = vfs.OS.Rename(part, file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write samples: %w", err), os.Remove(part))
	}
	return nil
}
