package wire

import (
	"context"

	"kumo/internal/app/folder"
	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/app/session"
	"kumo/internal/app/verify"
	"kumo/internal/base/vfs"
)

// VerifyFiles checks the record files of a crawl against each other that has no state, as in a place. The disk has them
// below dir.
func VerifyFiles(ctx context.Context, dir string, cfg verify.Config) (*verify.Report, error) {
	return verify.Run(ctx, verify.Parts{Dir: dir, Disk: cfg.Disk, View: vfs.NewOverlay(vfs.OS), Files: true}, cfg)
}

// InspectFiles opens a view of a crawl that has no state: what its record files say, and what its settings make of a
// URL. The disk has them below dir, which has the settings.
func InspectFiles(dir string, disk vfs.FS, settled func() (*job.Job, error)) (*inspect.View, error) {
	f := folder.At(dir, vfs.NewOverlay(vfs.OS))
	s, err := (&opening{Parts: session.Parts{Folder: f}, disk: f.Disk, alone: true}).share(settled)
	if err != nil {
		return nil, err
	}
	return session.ViewOfFiles(s, dir, disk), nil
}
