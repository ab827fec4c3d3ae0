package upload

import (
	"errors"

	"kumo/internal/archive/away"
	"kumo/internal/base/vfs"
)

// note writes into the folder's log that files are in the place.
func (u *Uploader) note(came ...away.Entry) (err error) {
	if len(came) == 0 {
		return nil
	}
	u.noting.Lock()
	defer u.noting.Unlock()
	name, lines := u.path(away.LogName), []byte(nil)
	for _, e := range came {
		lines = append(lines, e.Line()...)
	}
	if err := vfs.CutBack(u.cfg.Disk, name, u.log); err != nil { // a full disk has torn the last line
		return err
	}
	f, err := u.cfg.Disk.Append(name)
	if err != nil {
		return err
	}
	if _, err = f.Write(lines); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	u.log += int64(len(lines))
	for _, e := range came {
		had := u.there.Parts(e.Name)
		u.putUnnamed(&e)
		u.count(&e)
		u.uncount(had)
		if len(had) > 0 && away.IsPart(had[len(had)-1].Name) && !away.IsPart(e.Name) {
			u.complete = append(u.complete, e.Name)
		}
	}
	return nil
}

// putUnnamed puts a file into what is in the place, which the place's manifest does not name yet.
func (u *Uploader) putUnnamed(e *away.Entry) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.there.Put(*e)
	if u.unnamed != nil {
		u.unnamed[e.Name] = true
	}
}

// uncount takes out of the status what a file has taken the place of.
func (u *Uploader) uncount(had []away.Entry) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, e := range had {
		u.status.Files, u.status.Bytes = u.status.Files-1, u.status.Bytes-e.Size
	}
}

func (u *Uploader) count(e *away.Entry) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.status.Files++
	u.status.Bytes += e.Size
	if u.status.Waiting > 0 && !away.IsPart(e.Name) {
		u.status.Waiting--
		u.status.WaitSize = max(u.status.WaitSize-e.Size, 0)
	}
}

// drop removes WARC files that the place has, and names. Their indexes, which are small, stay.
func (u *Uploader) drop() error {
	if !u.cfg.Drop {
		return nil
	}
	names, err := u.cfg.Disk.List(u.path("warc"))
	if err != nil {
		return err
	}
	gone := false
	for _, name := range names {
		full := "warc/" + name
		if !isWARC(name) || !u.done[full] || !u.done["warc/"+indexOf(name)] {
			continue
		}
		if err := u.cfg.Disk.Remove(u.path(full)); err != nil {
			return err
		}
		gone = true
	}
	if !gone {
		return nil
	}
	return u.cfg.Disk.SyncDir(u.path("warc"))
}
