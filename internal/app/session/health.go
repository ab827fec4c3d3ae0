package session

import (
	"errors"
	"fmt"
	"time"

	"kumo/internal/base/vfs"
)

// StuckAfter is the time without progress after which a loop counts as stuck. A slow disk may block it for shorter
// times.
const StuckAfter = 2 * time.Minute

// StuckError returns an error if a loop has been silent for too long.
func StuckError(loop string, silence time.Duration) error {
	if silence < StuckAfter {
		return nil
	}
	return fmt.Errorf("%s: no progress for %v", loop, silence.Round(time.Second))
}

// CheckAlive returns an error if the crawl's loops make no progress, or its folder cannot be written. A full disk is no
// error: a restart does not help. It blocks for as long as the locks of the queues or the disk are blocked.
func (s *Session) CheckAlive() error {
	return errors.Join(StuckError("journal", s.Engine.Vitals().CommitSilence), s.CheckLoops())
}

// CheckLoops is CheckAlive without commits to the journal, which may wait for the other nodes of a cluster.
func (s *Session) CheckLoops() error {
	s.Frontier.Counts()
	s.URLsKnown()
	return errors.Join(StuckError("crawl loop", s.watching.Silence()), s.checkWritable())
}

// healthFile is written, synced and removed by CheckLoops, in the folder's state.
const healthFile = "health"

// checkWritable checks that the journal's folder can be written and synced.
func (s *Session) checkWritable() (err error) {
	if s.Folder == nil {
		return nil
	}
	disk, name := s.Folder.Disk, s.Folder.Path("state", healthFile)
	f, err := disk.Append(name)
	if err == nil {
		_, err = f.Write([]byte("ok\n"))
		if err == nil {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close(), disk.Remove(name))
	}
	if err != nil && !vfs.IsFull(err) {
		return fmt.Errorf("write the journal's folder: %w", err)
	}
	return nil
}

// CheckReady returns an error if the crawl cannot fetch because its disk is full, or has not begun.
func (s *Session) CheckReady() error {
	if s.run.Load() == nil {
		return errors.New("the crawl is starting")
	}
	if v := s.Engine.Vitals(); v.DiskFull {
		return fmt.Errorf("disk full: %d bytes are free, fewer than --min-free-disk (%d)", v.DiskFree, v.DiskMin)
	}
	return nil
}
