package audit

import (
	"context"
	"encoding/csv"
	"errors"
	"os"

	"kumo/internal/archive/export/table"
	"kumo/internal/archive/export/target"
	"kumo/internal/archive/links"
)

// WriteCSV runs an audit and writes a CSV file for each table to a folder, which other files must not share. Files of
// an earlier audit are replaced. With dir "", rows are only counted.
func WriteCSV(ctx context.Context, f *links.Finder, dir, temp string, limits Limits) (_ *Summary, err error) {
	own, err := os.MkdirTemp(temp, "kumo-audit-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(own)) }()
	cfg := Config{Finder: f, Temp: own, Limits: limits}
	if dir == "" {
		return Run(ctx, cfg)
	}
	to, err := target.Open(dir, "audit", temp)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	err = to.DeclareFiles(ctx, func(add func(string) error) error {
		var errs []error
		for i := range Tables {
			errs = append(errs, add(Tables[i].File()))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return nil, err
	}
	cfg.Begin = func(t *Table) (func([]string) error, func() error, error) { return beginCSV(to, t) }
	return Run(ctx, cfg)
}

// File returns the name of the table's file.
func (t *Table) File() string { return t.Name + ".csv" }

// beginCSV starts the file of a table.
func beginCSV(to *target.Folder, t *Table) (write func([]string) error, end func() error, err error) {
	file, err := to.Create(t.File())
	if err != nil {
		return nil, nil, err
	}
	out := csv.NewWriter(file)
	write = func(cells []string) error {
		for i := range cells {
			cells[i] = table.Cell(cells[i])
		}
		return out.Write(cells)
	}
	end = func() error {
		out.Flush()
		if err := out.Error(); err != nil {
			return errors.Join(err, file.Abort())
		}
		return file.Commit()
	}
	return write, end, write(append([]string(nil), t.Columns...))
}
