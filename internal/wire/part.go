package wire

import (
	"context"

	"kumo/internal/crawl"
	"kumo/internal/folder"
	"kumo/internal/journal"
	"kumo/internal/recovery"
	"kumo/internal/vfs"
)

// Peers are what makes a crawl one node's part of a crawl of several.
type Peers struct {
	Ship   func(local journal.Journal) (journal.Journal, error) // the journal, shipped to where the other nodes find it
	Join   func(*crawl.Parts)                                   // tells the engine of the other nodes
	Server bool                                                 // this process is a server of the cluster, too
}

// NewPart makes a node's part of a crawl, step by step: OpenFolder, Recover, Assemble, Run, as Open does for a crawl of
// one node. The caller closes it, however far it came.
func NewPart(j *Job, disk vfs.FS, p *Peers) *Crawl {
	return &Crawl{Job: j, journal: journal.Discard, disk: disk, runs: true, peers: p}
}

// OpenFolder makes and locks the crawl's folder.
func (c *Crawl) OpenFolder(ctx context.Context) (err error) {
	c.folder, err = folder.Open(ctx, c.disk, c.Job.Dir, folder.Options{Warn: c.Job.Warn})
	return err
}

// Recover checks the job, and reads the state from the folder.
func (c *Crawl) Recover() error {
	if err := c.check(); err != nil {
		return err
	}
	return c.openState()
}

// Assemble makes the engine.
func (c *Crawl) Assemble() error {
	if err := c.assemble(); err != nil {
		return err
	}
	return c.folder.WriteSettings(c.Job.Settings)
}

// Folder is where the crawl lies; nil where it keeps nothing.
func (c *Crawl) Folder() *folder.Folder { return c.folder }

// Disk is where the crawl's folder is.
func (c *Crawl) Disk() vfs.FS { return c.disk }

// State is what was recovered.
func (c *Crawl) State() *recovery.State { return c.state }

// Engine is what crawls, once it is assembled.
func (c *Crawl) Engine() *crawl.Engine { return c.engine }

// EndsBecause says, for the report, how a run ends whose context is about to end.
func (c *Crawl) EndsBecause(why string) { c.why.Store(&why) }
