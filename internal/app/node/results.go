package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// resultsPrefix is the prefix of the registry keys of the nodes' reports, also of those that are gone.
const resultsPrefix = "results/"

// resultsFile is the file with the report of all nodes in the folder of each.
const resultsFile = "report-all.json"

// SaveResults writes the report of all nodes to a node's folder.
func SaveResults(disk vfs.FS, dir string, all *stats.Report) error {
	data, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = vfs.Replace(disk, filepath.Join(dir, resultsFile), append(data, '\n'))
	}
	if vfs.IsFull(err) {
		err = errors.New("the disk is full")
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", resultsFile, err)
	}
	return nil
}

// PutResults stores the report of a node, in place of an earlier one.
func (c Control) PutResults(ctx context.Context, n strategy.Node, r stats.Report) error {
	r.Shorten()
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if len(value) > bus.MaxData {
		return bus.ErrTooLarge
	}
	for {
		e, err := c.Registry.Get(ctx, resultsPrefix+string(n))
		if err == nil {
			_, err = c.Registry.Put(ctx, resultsPrefix+string(n), value, e.Revision)
		}
		if !errors.Is(err, bus.ErrStale) {
			return err
		}
	}
}

// Results returns one report of all nodes that have taken part in the crawl, and their number.
func (c Control) Results(ctx context.Context, crawl string) (*stats.Report, int, error) {
	entries, err := bus.ReadAll(ctx, c.Registry, resultsPrefix)
	if err != nil {
		return nil, 0, fmt.Errorf("read the nodes' reports: %w", err)
	}
	var all []*stats.Report
	for _, e := range entries {
		r := new(stats.Report)
		if err := json.Unmarshal(e.Value, r); err != nil {
			return nil, 0, fmt.Errorf("read the report %s: %w", e.Key, err)
		}
		all = append(all, r)
	}
	record, _, err := c.Record(ctx)
	if err != nil {
		return nil, 0, err
	}
	sum := stats.Merge(all)
	if sum.Crawl, sum.Ended = crawl, string(record.State); record.Why != "" {
		sum.Ended += " (" + record.Why + ")"
	}
	return sum, len(all), nil
}

// ReadResults reads the report of all nodes in a node's folder; nil if there is none.
func ReadResults(disk vfs.FS, dir string) (*stats.Report, error) {
	data, err := vfs.ReadFile(disk, filepath.Join(dir, resultsFile), maxResults)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // as it says
	}
	all := new(stats.Report)
	if err == nil {
		err = json.Unmarshal(data, all)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, resultsFile), err)
	}
	return all, nil
}

// maxResults is the maximum size of a report in bytes.
const maxResults = 64 << 20
