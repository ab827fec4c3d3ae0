package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/engine/seeds"
)

// readInput reads the file of seeds: a few are the job's own, of many it has the file. The caller closes that, see
// closeInput.
func (o *options) readInput(ctx context.Context) error {
	if o.InputFile == "" {
		return nil
	}
	said := time.Now()
	f, err := seeds.OpenFile(ctx, o.InputFile, os.Stdin, func(lines int64) {
		if o.Quiet || time.Since(said) < seedLogInterval {
			return
		}
		said = time.Now()
		fmt.Fprintf(os.Stderr, "reading seeds: %d lines so far\n", lines)
	})
	if err != nil {
		return err
	}
	o.Job.File = f
	if f.Bad > 0 && !o.SkipBadSeeds {
		return f.FaultsError()
	}
	if f.Bad > 0 {
		o.warnings = append(o.warnings, "left out, as --skip-bad-seeds says: "+f.FaultsText())
	}
	if doubt := f.Warning(); doubt != "" {
		o.warnings = append(o.warnings, doubt)
	}
	if f.Few() {
		o.Job.Seeds = append(o.Job.Seeds, f.First...)
	}
	return nil
}

// seedLogInterval is how often a person is told that seeds are still being read.
const seedLogInterval = 2 * time.Second

func closeInput(j *job.Job) error {
	if j.File == nil {
		return nil
	}
	return j.File.Close()
}

// fromFiles says where the crawl's seeds come from that are not listed themselves.
func (o *options) fromFiles() []string {
	files := slices.Clone(o.seedFiles)
	if f := o.Job.File; f != nil && !f.Few() && !slices.Contains(files, f.Setting()) {
		files = append(files, f.Setting())
	}
	return files
}

// seedCount is how many seeds the user has named.
func seedCount(j *job.Job) int {
	n := len(j.Seeds)
	if f := j.File; f != nil && !f.Few() {
		n += int(f.Count)
	}
	return n
}

// seedTime is what the cluster may take longer to answer, because it has so many seeds to put down.
func seedTime(j *job.Job) time.Duration { return time.Duration(seedCount(j)) * time.Millisecond }

// warn says what was noticed while the settings were read.
func (o *options) warn(w io.Writer) {
	for _, text := range o.warnings {
		fmt.Fprintln(w, "kumo: "+text)
	}
}
