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

// A gauge measures the node's work since its start, and the machine's current resources. It belongs to the node's loop.
type gauge struct {
	limits   *machine.Limits // nil: not needed
	diskMbps float64         // write speed of the disk in megabits per second; 0: unknown
	line     machine.BandwidthMeter
	figures  machine.Resources
	read     time.Time // time of figures
	before   machine.Usage
	pages    int64 // at the start
}

// limitsInterval is the interval between two reads of the limits.
const limitsInterval = 10 * time.Second

// measure adds the work done by now, and returns the machine's resources.
func (g *gauge) measure(now time.Time, u machine.Usage) strategy.Machine {
	if g.limits == nil {
		return strategy.Machine{}
	}
	if g.read.IsZero() || now.Sub(g.read) >= limitsInterval {
		g.figures, g.read = g.limits.Read(), now
	}
	f := g.figures
	g.line.Observe(now, u, f.Cores)
	if measured := g.line.Mbps(); measured > 0 { // more accurate than the speed of the network card
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

// openGauge starts the measurement. It measures the disk unless there is a recent result.
func (m *membership) openGauge() {
	if m.n.Limits != nil {
		m.gauge.limits = m.n.Limits(m.job.Dir)
		if m.gauge.limits.Read().DiskMbps == 0 {
			m.gauge.diskMbps = writeSpeed(m.folder, time.Now(), m.n.warn)
		}
	}
	t := m.crawl.Stats.Totals() // of earlier processes
	m.gauge.pages = t.Pages
	m.gauge.before = machine.Usage{Bytes: t.Bytes, CPU: machine.CPUTime()}
}

// A diskMeasurement is the stored write speed of a folder's disk.
type diskMeasurement struct {
	Mbps float64   `json:"mbps"` // megabits per second
	Time time.Time `json:"time"`
}

// measurementTTL is how long a measurement is valid.
const measurementTTL = 24 * time.Hour

// writeSpeed returns the write speed of a folder's disk in megabits per second; 0 if it is unknown, with a warning. A
// measurement takes about two seconds, once a day.
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
		warn(fmt.Errorf("measure the disk's write speed: %w", err))
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
	if err := disk.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a process that died
		return 0, err
	}
	f, err := disk.Append(file)
	if err != nil {
		return 0, err
	}
	mbps, err = machine.WriteSpeed(f)
	return mbps, errors.Join(err, f.Close(), disk.Remove(file))
}
