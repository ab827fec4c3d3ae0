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

// checkSettings checks the settings file. If it is damaged and there is a valid copy, the copy will be restored.
func (r *repairer) checkSettings() error {
	text, err := vfs.ReadFile(vfs.OS, r.Path(settings.Name), settings.MaxSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	kept, ok := settings.ReadChecked(r.Path("state", settings.Name))
	if ok && string(kept) != string(text) {
		r.restored = kept
		r.Report(settings.Name + " is damaged: it is restored")
		return nil
	}
	if _, bad := settings.Read(r.Path(settings.Name)); !ok && (err != nil || bad != nil) {
		return advice.Usage("%s, with the settings of the crawl, cannot be read, nor can its copy in state: "+
			"rewrite it with the settings that "+
			"the crawl was started with (scope, depth and so on); kumo crawl --dry-run prints settings without writing them",
			r.Path(settings.Name))
	}
	return nil
}

// restoreSettings restores the settings file, the only damaged file.
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

// makeJob creates the job from the restored settings, if any. It replaces the settings file only temporarily.
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
