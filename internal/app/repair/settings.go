package repair

import (
	"errors"
	"io/fs"
	"os"

	"kumo/internal/app/job"
	"kumo/internal/base/advice"
	"kumo/internal/base/settings"
	"kumo/internal/base/vfs"
)

// checkSettings finds out whether the settings are as kumo wrote them, and makes them so for a while, so that the job can be
// made.
func (r *repairer) checkSettings() error {
	text, err := vfs.ReadFile(vfs.OS, r.Path(settings.Name), settings.MaxSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	kept, ok := settings.ReadChecked(r.Path("state", settings.Name))
	if ok && string(kept) != string(text) {
		r.restored = kept
		r.Report(settings.Name + " is not as kumo wrote it: it is put back")
		return nil
	}
	if _, bad := settings.Read(r.Path(settings.Name)); !ok && (err != nil || bad != nil) {
		return advice.Usage("%s, which has the settings of the crawl, cannot be read, and neither can its copy in state: "+
			"write it anew, with the settings that "+
			"the crawl was begun with (scope, depth and the like); kumo crawl --dry-run writes none, but says them",
			r.Path(settings.Name))
	}
	return nil
}

// restoreSettings puts the settings back, of which alone something was wrong.
func (r *repairer) restoreSettings() error {
	r.result.OnlySettings = true
	if r.DryRun {
		return nil
	}
	r.result.Damaged = r.damagedName()
	if err := r.moveAway([]string{settings.Name}); err != nil {
		return err
	}
	return r.Replace(settings.Name, r.restored)
}

// makeJob makes the job by the settings that are to be put back, if any are.
func (r *repairer) makeJob() (_ *job.Job, err error) {
	if r.restored != nil {
		name := r.Path(settings.Name)
		was, failed := vfs.ReadFile(vfs.OS, name, settings.MaxSize)
		if err := r.Replace(settings.Name, r.restored); err != nil {
			return nil, err
		}
		defer func() {
			if failed != nil {
				err = errors.Join(err, os.Remove(name))
			} else {
				err = errors.Join(err, r.Replace(settings.Name, was))
			}
		}()
	}
	return r.Job()
}
