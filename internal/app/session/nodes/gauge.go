package nodes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/node"
	"kumo/internal/base/machine"
	"kumo/internal/base/vfs"
	"kumo/internal/cluster/strategy"
)

// A gauge says what the node has done since it began, and what its machine has, as it is now. It is used by the node's
// loop.
type gauge struct {
	limits   *machine.Limits // nil: nobody asks what the machine has
	diskMbps float64         // megabits a second that its disk takes; 0: not known
	line     machine.BandwidthMeter
	figures  machine.Resources
	read     time.Time // when limits were
	before   machine.Usage
	pages    int64 // before, too
}

// limitsInterval is how often limits are read again.
const limitsInterval = 10 * time.Second

// look takes in what was done by now, and says what the machine has.
func (g *gauge) measure(now time.Time, u machine.Usage) strategy.Machine {
	if g.limits == nil {
		return strategy.Machine{}
	}
	if g.read.IsZero() || now.Sub(g.read) >= limitsInterval {
		g.figures, g.read = g.limits.Read(), now
	}
	f := g.figures
	g.line.Observe(now, u, f.Cores)
	if measured := g.line.Mbps(); measured > 0 { // a fast card says nothing of the line behind it
		f.NetworkMbps = measured
	}
	if f.DiskMbps == 0 {
		f.DiskMbps = g.diskMbps
	}
	return strategy.Machine(f)
}

func (m *membership) work() node.Work {
	t := m.crawl.Stats.Totals()
	u := machine.Usage{Bytes: t.Bytes - m.gauge.before.Bytes, CPU: machine.CPUTime() - m.gauge.before.CPU,
		Busy: m.busy(m.crawl.Frontier.Counts().Active)}
	durable := min(m.engine.Inspector.DurablePages(), t.Pages)
	return node.Work{Pages: durable - m.gauge.pages, NewURLs: m.engine.Links.Taken(), Pending: t.Pages - durable,
		Bytes: u.Bytes, CPU: u.CPU, Machine: m.gauge.measure(time.Now(), u)}
}

// openGauge begins to count. The disk is measured, if that was not done lately.
func (m *membership) openGauge() {
	if m.n.Limits != nil {
		m.gauge.limits = m.n.Limits(m.job.Dir)
		if m.gauge.limits.Read().DiskMbps == 0 {
			m.gauge.diskMbps = writeSpeed(m.folder, time.Now(), m.n.warn)
		}
	}
	t := m.crawl.Stats.Totals() // earlier processes'
	m.gauge.pages = t.Pages
	m.gauge.before = machine.Usage{Bytes: t.Bytes, CPU: machine.CPUTime()}
}

// A measured is what a folder's disk takes, as the folder keeps it.
type diskMeasurement struct {
	Mbps float64   `json:"mbps"` // megabits a second
	Time time.Time `json:"time"`
}

// measurementTTL is how long a measurement is good.
const measurementTTL = 24 * time.Hour

// writeSpeed is how many megabits a second a folder's disk takes; 0 if that is not known, which warn is told why. It
// takes some two seconds, once a day.
func writeSpeed(f *folder.Folder, now time.Time, warn func(error)) float64 {
	file := f.Path("state", "disk.json")
	if was, err := readMeasurement(f.Disk, file); err == nil && now.Sub(was.Time).Abs() < measurementTTL {
		return was.Mbps
	}
	mbps, err := measure(f.Disk, f.Path("state", "disk.tmp"))
	if err == nil {
		data, _ := json.Marshal(diskMeasurement{mbps, now.UTC()}) // plain fields
		err = vfs.Replace(f.Disk, file, append(data, '\n'))
	}
	if err != nil {
		warn(fmt.Errorf("it is not known how fast the disk is: %w", err))
	}
	return mbps
}

func readMeasurement(disk vfs.FS, file string) (was diskMeasurement, err error) {
	r, err := disk.Open(file)
	if err != nil {
		return was, err
	}
	defer r.Close()
	return was, json.NewDecoder(io.LimitReader(r, 1<<10)).Decode(&was)
}

func measure(disk vfs.FS, file string) (mbps float64, err error) {
	if err := disk.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a process that died
		return 0, err
	}
	f, err := disk.Append(file)
	if err != nil {
		return 0, err
	}
	mbps, err = machine.WriteSpeed(f)
	return mbps, errors.Join(err, f.Close(), disk.Remove(file))
}
