package wire

import (
	"errors"
	"fmt"
	"os"

	"kumo/internal/app/job"
	"kumo/internal/archive/away"
	"kumo/internal/base/advice"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store"
	"kumo/internal/state/store/crawllog"
	"kumo/internal/state/store/jsonl"
	"kumo/internal/state/store/warc"
)

// openStores opens the append-only files. The WARC store comes first, because it sets a record's location, which
// pages.jsonl contains.
func (o *opening) openStores(p *crawl.Parts) (err error) {
	j := o.Job
	defer func() { o.Stores = append(o.Stores, j.Stores...) }()
	if j.Dir == "" {
		return nil
	}
	if err := o.openWARC(); err != nil {
		return err
	}
	marks := o.State.Marks
	if p.Deferred, err = statefile.OpenDeferred(o.disk, j.Dir, marks); err != nil {
		return err
	}
	o.Stores = append(o.Stores, p.Deferred)
	if p.Answers, err = statefile.OpenRobotsAnswers(o.disk, j.Dir, marks); err != nil {
		return err
	}
	o.Stores = append(o.Stores, p.Answers)
	if p.ScopeSeeds, err = statefile.OpenScopeSeeds(o.disk, j.Dir, marks); err != nil {
		return err
	}
	o.Stores = append(o.Stores, p.ScopeSeeds)
	lines := jsonl.Config{Dir: j.Dir, NoPages: !j.Writes(job.JSONL)}
	if err := o.add(jsonl.Open(o.disk, lines, marks)); err != nil {
		return err
	}
	if j.Text != nil {
		if err := o.add(jsonl.OpenTexts(o.disk, lines, marks)); err != nil {
			return err
		}
	}
	_, kept := store.FindMark(marks, jsonl.FieldsName) // otherwise the file of an earlier run would be truncated later
	if kept || j.Fields != nil || j.Filters != nil && j.Filters.Records {
		if err := o.add(jsonl.OpenFields(o.disk, lines, marks)); err != nil {
			return err
		}
	}
	if err := o.add(crawllog.Open(o.disk, crawllog.Config{Dir: j.Dir}, marks)); err != nil {
		return err
	}
	if o.uploadedDisk != nil && j.Upload.Durable != nil {
		p.Durable = j.Upload.Durable
		p.Durable(marks)
	}
	return nil
}

func (o *opening) add(s store.Store, err error) error {
	if err == nil {
		o.Stores = append(o.Stores, s)
	}
	return err
}

func (o *opening) openWARC() error {
	j := o.Job
	if !j.Writes(job.WARC) {
		return nil
	}
	hostname, err := os.Hostname()
	if err != nil {
		hostname = "localhost"
	}
	disk, closed := o.records(), func() {}
	if o.uploadedDisk != nil {
		closed = j.Upload.Closed
	}
	if o.peers == nil { // a node that has lost its place starts with a new state
		if err := warc.Check(disk, j.Dir, o.State.Marks, j.Moved); err != nil {
			return o.withPlaceHint(err)
		}
	}
	return o.add(warc.Open(disk, warc.Config{Dir: j.Dir, Name: j.Name, Hostname: job.SafeName(hostname),
		MaxSize: j.WARCSize, Compression: j.Compress, Scratch: o.scratch, Software: job.Agent + "/" + job.Version,
		Info: warcInfo(j), Now: j.Crawl.Now, Closed: closed}, o.State.Marks))
}

// withPlaceHint adds advice to an error about missing WARC files if they are uploaded.
func (o *opening) withPlaceHint(err error) error {
	if o.uploadedDisk != nil || !errors.Is(err, warc.ErrMissing) {
		return err
	}
	if l, linkErr := away.ReadLink(o.Job.Dir); linkErr == nil && l != nil {
		return advice.With(err, fmt.Sprintf("files of this crawl are in %s: only kumo crawl -o %s reads them there",
			l.Place, o.Job.Dir))
	}
	return err
}

func warcInfo(j *job.Job) [][2]string {
	info := [][2]string{
		{"http-header-user-agent", j.UserAgent()},
		{"robots", map[bool]string{false: "obey", true: "ignore"}[j.Crawl.IgnoreRobots]},
	}
	if j.Contact != "" {
		info = append(info, [2]string{"operator", j.Contact})
	}
	for _, s := range j.Settings {
		for _, v := range s.Values {
			info = append(info, [2]string{"kumo-" + s.Key, v})
		}
	}
	return info
}
