package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"kumo/internal/app/node"
	"kumo/internal/app/session"
	"kumo/internal/archive/away"
	"kumo/internal/base/advice"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/bus"
)

// openUploader creates the uploader of this node's record files, if they have a storage location. If that fails, a new
// node ends, so that the user sees the error; a node that was a member retries.
func (m *membership) openUploader(ctx context.Context) (err error) {
	if m.n.NewUploader == nil {
		return nil
	}
	for again := statePollInterval; ; again = min(2*again, time.Minute) {
		m.upload.uploader, err = m.n.NewUploader(ctx, m.job, string(m.id.Node()))
		if err == nil || advice.IsUsage(err) || !m.n.home.keep.Load() {
			return err
		}
		m.n.Log.Warn("waiting for the storage location of the record files", "next_try_in", again, "why", err)
		if err := wait.For(ctx, again); err != nil {
			return err
		}
	}
}

// startUpload starts the upload once the node is a member, because a rejected node must not upload anything. If an
// earlier process was a member, it starts at once.
func (m *membership) startUpload(ctx context.Context) {
	if m.upload.uploader == nil {
		return
	}
	waiting, decide := context.WithCancel(context.Background())
	m.upload.begun, m.upload.decide = make(chan bool, 1), decide
	begin := func() {
		m.upload.uploader.Start(context.WithoutCancel(ctx))
		m.upload.begun <- true
	}
	if m.wasMember {
		begin()
		return
	}
	go func() {
		select {
		case <-m.router.Joined():
			begin()
		case <-waiting.Done():
			select {
			case <-m.router.Joined(): // just now
				begin()
			default:
				m.upload.begun <- false
			}
		}
	}()
}

// A memberUpload uploads a node's record files, once it is decided that the node is a member.
type memberUpload struct {
	uploader session.Uploader // nil: record files stay in the folder
	begun    chan bool        // contains the decision whether the upload was started; nil: no upload
	decide   context.CancelFunc
}

// end reports whether the upload was started. Afterwards it cannot start.
func (c *memberUpload) end() bool {
	if c.begun == nil {
		return false
	}
	c.decide()
	began := <-c.begun
	c.begun <- began
	return began
}

// publishPlace publishes the storage location of the node's record files before there are any. If the node fails, the
// node that takes over looks there for pages that need not be fetched again.
func (m *membership) publishPlace(ctx context.Context) error {
	if m.upload.uploader == nil {
		return nil
	}
	place, key := m.upload.uploader.URL(), node.PlaceKey(m.id.Node())
	for {
		e, err := m.bus.Get(ctx, key)
		if err == nil && string(e.Value) != place {
			_, err = m.bus.Put(ctx, key, []byte(place), e.Revision)
		}
		if err == nil || !errors.Is(err, bus.ErrUnavailable) && !errors.Is(err, bus.ErrStale) {
			return err
		}
		if err := wait.For(ctx, statePollInterval); err != nil {
			return err
		}
	}
}

// finishUpload finishes the upload at the end of a membership. It does not wait for the upload if the node was declared
// dead or restarts. If the node never became a member, there is nothing to upload.
func (m *membership) finishUpload(ctx context.Context, ended error) error {
	defer m.n.finishing.Store(false)
	if m.upload.uploader == nil || m.crawl == nil || !m.upload.end() { // never a member
		return ended
	}
	if errors.Is(ended, node.ErrLost) || errors.Is(ended, errSettings) || m.n.refused(ctx, ended) {
		m.upload.uploader.Abort()
		return ended
	}
	m.n.finishing.Store(true)
	// before waiting for the upload: if the process is killed then, the state would remain there forever
	stays := m.removeStates(ctx)
	ended = session.FinishUpload(ctx, m.upload.uploader, ended)
	if stays != nil { // the storage location may work now
		stays = m.removeStates(ctx)
	}
	if stays != nil {
		m.n.Log.Warn("cannot delete this node's state from the storage location", "place", m.upload.uploader.URL(), "why",
			stays)
	}
	return ended
}

// removeStates deletes the node's uploaded state if its log was deleted.
func (m *membership) removeStates(ctx context.Context) error {
	c, is := m.upload.uploader.(session.StateUploader)
	if !is || !m.dropped {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return c.RemoveStates(ctx)
}

// Uploading reports whether the node's part is over, and only the upload of its record files continues.
func (n *Node) Uploading() bool { return n.finishing.Load() }

// uploadLost uploads the files of earlier nodes in this folder that were declared dead, one after the other. These
// nodes are no longer part of the crawl, but their records are valid. It retries until ctx ends.
func (n *Node) uploadLost(ctx context.Context) {
	if n.NewUploader == nil {
		return
	}
	n.uploading.Lock()
	defer n.uploading.Unlock()
	for again := 5 * time.Second; !n.uploadAll(ctx); again = min(2*again, 5*time.Minute) {
		if wait.For(ctx, again) != nil {
			return
		}
	}
}

// uploadAll makes one attempt, and reports whether everything is uploaded.
func (n *Node) uploadAll(ctx context.Context) (all bool) {
	all = true
	for _, dir := range n.pendingUploads() {
		if err := n.uploadEarlier(ctx, dir); err != nil {
			all = false
			n.Log.Warn("the files of an earlier node in this folder are not uploaded yet", "folder", dir, "why", err)
		}
	}
	return all
}

func (n *Node) pendingUploads() (dirs []string) {
	links, _ := filepath.Glob(filepath.Join(n.job.Dir, lostFolder("*"), away.LinkName))
	for _, link := range links {
		dir := filepath.Dir(filepath.Dir(link))
		if _, err := os.Stat(filepath.Join(dir, uploadedName)); err != nil {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// warnPending warns at the end about files that are not uploaded.
func (n *Node) warnPending() {
	if n.NewUploader == nil {
		return
	}
	for _, dir := range n.pendingUploads() {
		n.Log.Warn("files of an earlier node in this folder are not uploaded: start the node again to upload them",
			"folder", dir)
	}
}

// uploadedName marks the folder of an earlier node whose files are all uploaded.
var uploadedName = filepath.Join("state", "brought")

func (n *Node) uploadEarlier(ctx context.Context, dir string) (err error) {
	id, err := IdentityOf(dir)
	if err != nil || id == "" {
		return err
	}
	if err := n.CompleteFiles(dir); err != nil { // the closed files are valid nevertheless
		n.Log.Warn("cannot complete the files of an earlier node in this folder: its last records are not uploaded",
			"folder", dir, "why", err)
	}
	j := *n.job
	j.Dir = dir
	c, err := n.NewUploader(ctx, &j, id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if _, err := j.Upload.Overlay(n.disk); err != nil {
		return err
	}
	c.Start(ctx)
	if err := c.Finish(ctx); err != nil {
		return err
	}
	n.Log.Info("the files of an earlier node in this folder are uploaded", "folder", dir, "place", c.URL())
	if err := os.WriteFile(filepath.Join(dir, uploadedName), nil, 0o600); err != nil {
		return fmt.Errorf("record that the upload is complete: %w", err)
	}
	return nil
}
