package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// A simFolder is where an experiment's files go; "" is nowhere.
type simFolder string

// prepare makes the folder and tries whether it can be written to, before the work is done.
func (s simFolder) prepare() error {
	if s == "" {
		return nil
	}
	if err := os.MkdirAll(string(s), 0o777); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	f, err := os.CreateTemp(string(s), ".kumo-*")
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// write writes a file whole, if there is a folder.
func (s simFolder) write(name string, write func(io.Writer) error) error {
	if s == "" {
		return nil
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(string(s), name), b.Bytes(), 0o666); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}
