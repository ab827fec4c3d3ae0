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

// readInput reads the file of seeds. A few seeds are added to the job; otherwise the job refers to the file, which the
// caller closes with closeInput.
func (o *options) readInput(ctx context.Context) error {
	if o.InputFile == "" {
		return nil
	}
	logged := time.Now()
	f, err := seeds.OpenFile(ctx, o.InputFile, os.Stdin, func(lines int64) {
		if o.Quiet || time.Since(logged) < seedLogInterval {
			return
		}
		logged = time.Now()
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
		o.warnings = append(o.warnings, "skipped because of --skip-bad-seeds: "+f.FaultsText())
	}
	if doubt := f.Warning(); doubt != "" {
		o.warnings = append(o.warnings, doubt)
	}
	if f.Few() {
		o.Job.Seeds = append(o.Job.Seeds, f.First...)
	}
	return nil
}

// seedLogInterval is the time between messages while seeds are being read.
const seedLogInterval = 2 * time.Second

func closeInput(j *job.Job) error {
	if j.File == nil {
		return nil
	}
	return j.File.Close()
}

// fromFiles returns the sources of seeds that are not listed individually.
func (o *options) fromFiles() []string {
	files := slices.Clone(o.seedFiles)
	if f := o.Job.File; f != nil && !f.Few() && !slices.Contains(files, f.Setting()) {
		files = append(files, f.Setting())
	}
	return files
}

// seedCount returns the number of seeds named by the user.
func seedCount(j *job.Job) int {
	n := len(j.Seeds)
	if f := j.File; f != nil && !f.Few() {
		n += int(f.Count)
	}
	return n
}

// seedTime returns the additional time that the cluster may need to store the seeds.
func seedTime(j *job.Job) time.Duration { return time.Duration(seedCount(j)) * time.Millisecond }

// warn prints the warnings found while the settings were read.
func (o *options) warn(w io.Writer) {
	for _, text := range o.warnings {
		fmt.Fprintln(w, "kumo: "+text)
	}
}
