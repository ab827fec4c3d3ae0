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
	"kumo/internal/cluster/strategy"
)

// openUploader prepares what brings this life's record files to a place, if they are to go to one. A place that fails
// ends a process that begins, so that a person sees it; one that was a member waits for it.
func (m *membership) openUploader(ctx context.Context) (err error) {
	if m.n.NewUploader == nil {
		return nil
	}
	for again := statePollInterval; ; again = min(2*again, time.Minute) {
		m.upload.uploader, err = m.n.NewUploader(ctx, m.job, string(m.id.Node()))
		if err == nil || advice.IsUsage(err) || !m.n.home.keep.Load() {
			return err
		}
		m.n.Log.Warn("this node waits for the place of its record files", "next_try_in", again, "why", err)
		if err := wait.For(ctx, again); err != nil {
			return err
		}
	}
}

// startUpload starts the carrier when the node is a member: one that is refused leaves nothing in the place. An
// earlier process that was one has left files to bring.
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

// A carriage uploads a node's record files to a place, once it is decided that the node is a member.
type memberUpload struct {
	uploader session.Uploader // nil: they stay in the folder
	begun    chan bool        // holds, after the decision, whether the carrier was started; nil: no upload
	decide   context.CancelFunc
}

// end reports whether the carrier was started. Afterwards it is never started.
func (c *memberUpload) end() bool {
	if c.begun == nil {
		return false
	}
	c.decide()
	began := <-c.begun
	c.begun <- began
	return began
}

// publishPlace tells the other nodes where the record files of this life go, before there are any: who folds what it held
// looks there for what need not be fetched again.
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

// finishUpload ends the bringing of a life that is over. One that others have given up, or that begins again, does not wait
// for its place, and one that was never taken in has nothing to bring.
func (m *membership) finishUpload(ctx context.Context, ended error) error {
	defer m.n.finishing.Store(false)
	if m.upload.uploader == nil || m.crawl == nil || !m.upload.end() { // who was never a member has nothing to bring
		return ended
	}
	if errors.Is(ended, node.ErrLost) || errors.Is(ended, errSettings) || m.n.refused(ctx, ended) {
		m.upload.uploader.Abort()
		return ended
	}
	m.n.finishing.Store(true)
	stays := m.removeStates(ctx) // first: who is killed while it waits for the place leaves it there for good
	ended = session.FinishUpload(ctx, m.upload.uploader, ended)
	if stays != nil { // the place may work by now
		stays = m.removeStates(ctx)
	}
	if stays != nil {
		m.n.Log.Warn("what the place has of this node's state stays there", "place", m.upload.uploader.URL(), "why", stays)
	}
	return ended
}

// removeStates removes what the place has of the node's state, if the log is gone that belongs to it.
func (m *membership) removeStates(ctx context.Context) error {
	c, is := m.upload.uploader.(session.StateUploader)
	if !is || !m.dropped {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return c.RemoveStates(ctx)
}

// Uploading reports whether the node's part is over, and the rest of its record files is on its way to their place.
func (n *Node) Uploading() bool { return n.finishing.Load() }

// uploadLost brings to their places what earlier lives have left in the folder that were given up, one after the other.
// They are no part of the crawl any more, and their records are good. What fails is tried again, until ctx ends.
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

// uploadAll tries it once, and reports whether all is there.
func (n *Node) uploadAll(ctx context.Context) (all bool) {
	all = true
	for _, dir := range n.pendingUploads() {
		if err := n.uploadEarlier(ctx, dir); err != nil {
			all = false
			n.Log.Warn("what an earlier life has left is not in its place yet", "folder", dir, "why", err)
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

// warnPending says at the end what nobody brings any more.
func (n *Node) warnPending() {
	if n.NewUploader == nil {
		return
	}
	for _, dir := range n.pendingUploads() {
		n.Log.Warn("files of an earlier life of this node are not in their place: they wait until it is started again",
			"folder", dir)
	}
}

// uploadedName marks a life's folder of which all is in the place.
var uploadedName = filepath.Join("state", "brought")

func (n *Node) uploadEarlier(ctx context.Context, dir string) (err error) {
	id, err := IdentityOf(dir)
	if err != nil || id == "" {
		return err
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
	n.Log.Info("what an earlier life has left is in its place", "folder", dir, "place", c.URL())
	if err := os.WriteFile(filepath.Join(dir, uploadedName), nil, 0o600); err != nil {
		return fmt.Errorf("note that: %w", err)
	}
	return nil
}

// deletePlace removes what the registry has of a node's place, which is gone for good.
func deletePlace(ctx context.Context, b bus.Bus, n strategy.Node) error {
	e, err := b.Get(ctx, node.PlaceKey(n))
	if err != nil || e.Value == nil {
		return err
	}
	return b.Delete(ctx, node.PlaceKey(n), e.Revision)
}
