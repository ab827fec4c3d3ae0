package wire

import (
	"context"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/repair"
	"kumo/internal/app/repair/rebuild"
	"kumo/internal/app/session"
)

// Repair repairs the crawl in dir; see [repair.Run].
func Repair(ctx context.Context, dir string, o repair.Options) (*repair.Result, error) {
	return repair.Run(ctx, dir, o, repair.Openers{View: view, Crawl: openRebuilt})
}

// openRebuilt opens a crawl with a rebuilt state. No other process knows its folder, so it is not locked.
func openRebuilt(j *job.Job, f *folder.Folder) (rebuild.Crawl, error) {
	o := &opening{Parts: session.Parts{Job: j}, disk: f.Disk}
	return o.make(func() error {
		if err := o.check(); err != nil {
			return err
		}
		o.Folder = f
		return runSteps(o.openState, o.assemble)
	})
}
