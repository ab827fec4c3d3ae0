package folder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
)

const reportName = "report.json"

// ReadReport reads the report of the last run of the crawl in dir; nil if there is none.
func ReadReport(dir string) (*stats.Report, error) {
	data, err := vfs.ReadFile(vfs.OS, filepath.Join(dir, reportName), stats.MaxReport)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r stats.Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, reportName), err)
	}
	return &r, nil
}

// Size returns the number of bytes of the files in dir, without earlier crawls that were moved aside.
func Size(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != dir && filepath.Dir(name) == dir && d.Name() != "warc" && d.Name() != "state":
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return nil
	})
	return size, err
}
