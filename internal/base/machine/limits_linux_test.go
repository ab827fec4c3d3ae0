package machine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A tree is the content of /proc and /sys by file. A value that begins with "->" is a link.
type tree map[string]string

func (t tree) limits(test *testing.T, device string) *Limits {
	test.Helper()
	root := test.TempDir()
	for name, text := range t {
		file := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if err == nil {
			if to, is := strings.CutPrefix(text, "->"); is {
				err = os.Symlink(to, file)
			} else {
				err = os.WriteFile(file, []byte(text+"\n"), 0o644)
			}
		}
		if err != nil {
			test.Fatal(err)
		}
	}
	return &Limits{root, device}
}

func with(trees ...tree) tree {
	all := tree{}
	for _, t := range trees {
		for name, text := range t {
			all[name] = text
		}
	}
	return all
}

// bare is a machine with four processors and without control groups.
var bare = tree{
	"proc/self/status": "Name:\tkumo\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3",
	"proc/meminfo":     "MemTotal:        8388608 kB\nMemFree:          123 kB",
	"proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) CPU E5-2630 v3 @ 2.40GHz\ncpu MHz\t\t: 3100.1\n\n" +
		"processor\t: 1\nmodel name\t: Intel(R) Xeon(R) CPU E5-2630 v3 @ 2.40GHz\ncpu MHz\t\t: 1200.1",
	"proc/self/net/route": "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n" +
		"eth1\t00000000\t010200C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n" +
		"eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n" +
		"eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0",
	"sys/class/net/eth0/speed":             "1000",
	"sys/class/net/eth0/device/driver":     "->../../drivers/e1000e",
	"sys/class/net/eth1/speed":             "10000",
	"sys/class/net/eth1/device/driver":     "->../../drivers/ixgbe",
	"sys/devices/pci0/nvme0n1/dev":         "259:0",
	"sys/devices/pci0/nvme0n1/nvme0n1p2/x": "",
}

// second has control groups of version 2, mounted as systemd does, with the process in a nested group.
var second = tree{
	"proc/self/cgroup":    "0::/crawls.slice/kumo.service",
	"proc/self/mountinfo": "35 25 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate",
}

// first has control groups of version 1, with a hierarchy for each controller.
var first = tree{
	"proc/self/cgroup": "9:memory:/kumo/a b\n4:cpu,cpuacct:/kumo\n3:blkio:/kumo\n1:name=systemd:/\n0::/",
	"proc/self/mountinfo": `32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:3 master:4 - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw`,
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name string
		tree tree
		want Resources
	}{
		{"no control groups", bare, Resources{4, 2.4, 8, 1000, 0}},
		{"nothing to be read", tree{}, Resources{Cores: processors()}},
		{"no limits", with(bare, second, tree{
			"sys/fs/cgroup/crawls.slice/kumo.service/cpu.max":     "max 100000",
			"sys/fs/cgroup/crawls.slice/kumo.service/memory.max":  "max",
			"sys/fs/cgroup/crawls.slice/kumo.service/memory.high": "max",
			"sys/fs/cgroup/crawls.slice/kumo.service/io.max":      "",
		}), Resources{4, 2.4, 8, 1000, 0}},
		{"its group's limits", with(bare, second, tree{
			"sys/fs/cgroup/crawls.slice/kumo.service/cpu.max":    "50000 100000",
			"sys/fs/cgroup/crawls.slice/kumo.service/memory.max": "1073741824",
			"sys/fs/cgroup/crawls.slice/kumo.service/io.max": "8:0 rbps=max wbps=99 riops=max wiops=max\n" +
				"259:0 rbps=1 wbps=1000000 riops=max wiops=max",
		}), Resources{0.5, 2.4, 1, 1000, 8}},
		{"limits of a group above", with(bare, second, tree{
			"sys/fs/cgroup/crawls.slice/cpu.max":                  "150000 100000",
			"sys/fs/cgroup/crawls.slice/kumo.service/cpu.max":     "200000 100000",
			"sys/fs/cgroup/crawls.slice/memory.high":              "2147483648",
			"sys/fs/cgroup/crawls.slice/kumo.service/memory.max":  "4294967296",
			"sys/fs/cgroup/crawls.slice/io.max":                   "259:0 wbps=500000",
			"sys/fs/cgroup/crawls.slice/kumo.service/memory.high": "max",
		}), Resources{1.5, 2.4, 2, 1000, 4}},
		{"more than there is", with(bare, second, tree{
			"sys/fs/cgroup/crawls.slice/kumo.service/cpu.max":    "900000 100000",
			"sys/fs/cgroup/crawls.slice/kumo.service/memory.max": "99999999999999",
		}), Resources{4, 2.4, 8, 1000, 0}},
		{"the first version", with(bare, first, tree{
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":                   "-1",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us":                  "100000",
			"sys/fs/cgroup/cpu,cpuacct/kumo/cpu.cfs_quota_us":              "25000",
			"sys/fs/cgroup/cpu,cpuacct/kumo/cpu.cfs_period_us":             "50000",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":                   "9223372036854771712",
			"sys/fs/cgroup/memory/kumo/memory.limit_in_bytes":              "3221225472",
			"sys/fs/cgroup/memory/kumo/a b/memory.limit_in_bytes":          "9223372036854771712",
			"sys/fs/cgroup/blkio/kumo/blkio.throttle.write_bps_device":     "259:0 125000\n8:0 1",
			"sys/fs/cgroup/blkio/kumo/blkio.throttle.read_bps_device":      "259:0 1",
			"sys/fs/cgroup/unified/not/ours/cpu.max":                       "1000 100000",
			"sys/fs/cgroup/cpu,cpuacct/somebody else/cpu.cfs_quota_us":     "1",
			"sys/fs/cgroup/cpu,cpuacct/somebody else/cpu.cfs_period_us":    "1000",
			"sys/fs/cgroup/memory/somebody else/memory.limit_in_bytes":     "1",
			"sys/fs/cgroup/blkio/else/blkio.throttle.write_bps_device":     "259:0 1",
			"sys/fs/cgroup/blkio/kumo/below/blkio.throttle.write_bps_dev.": "259:0 1",
		}), Resources{0.5, 2.4, 3, 1000, 1}},
		{"a container that sees its own group only", with(bare, tree{
			"proc/self/cgroup":       "0::/docker/abc",
			"proc/self/mountinfo":    `35 25 0:30 /docker/abc /sys/fs/c\040group ro - cgroup2 cgroup rw`,
			"sys/fs/c group/cpu.max": "100000 100000",
		}), Resources{1, 2.4, 8, 1000, 0}},
		{"a group that is not to be seen", with(bare, tree{
			"proc/self/cgroup":              "0::/../outside",
			"proc/self/mountinfo":           `35 25 0:30 / /sys/fs/cgroup ro - cgroup2 cgroup rw`,
			"sys/fs/cgroup/cpu.max":         "200000 100000",
			"sys/fs/cgroup/outside/cpu.max": "1000 100000",
		}), Resources{2, 2.4, 8, 1000, 0}},
		{"two processors by affinity", with(bare, tree{"proc/self/status": "Cpus_allowed_list:\t1,3"}),
			Resources{2, 2.4, 8, 1000, 0}},
		{"speeds of the processors", with(bare, tree{
			"sys/devices/system/cpu/cpu0/cpufreq/base_frequency":   "2600000",
			"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "3900000",
			"sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq": "3000000",
			"sys/devices/system/cpu/cpu2/cpufreq/cpuinfo_max_freq": "3000000",
			"sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq": "1000000", // power saving
			"sys/devices/system/cpu/cpu7/cpufreq/cpuinfo_max_freq": "9000000", // not in the affinity mask
		}), Resources{4, 2.2, 8, 1000, 0}},
		{"a virtual machine's processors", with(bare, tree{"proc/cpuinfo": "model name\t: AMD EPYC\ncpu MHz\t\t: 2596.142"}),
			Resources{4, 2.6, 8, 1000, 0}},
		{"another architecture", with(bare, tree{"proc/cpuinfo": "processor\t: 0\nBogoMIPS\t: 50.00"}),
			Resources{4, 0, 8, 1000, 0}},
		{"a virtual card", with(bare, tree{"sys/class/net/eth0/device/driver": "->../../drivers/vmxnet3"}),
			Resources{4, 2.4, 8, 0, 0}},
		{"a card that does not know", with(bare, tree{"sys/class/net/eth0/speed": "-1"}), Resources{4, 2.4, 8, 0, 0}},
		{"a card that says nonsense", with(bare, tree{"sys/class/net/eth0/speed": "4294967295"}), Resources{4, 2.4, 8, 0, 0}},
		{"a pair in a container", with(bare, tree{
			"proc/self/net/route":       "Iface\nveth0\t00000000\t0\t0003\t0\t0\t0\t00000000\t0\t0\t0",
			"sys/class/net/veth0/speed": "10000",
		}), Resources{4, 2.4, 8, 0, 0}},
		{"two cards as one", with(bare, tree{
			"proc/self/net/route":              "Iface\nbond0\t00000000\t0\t0003\t0\t0\t0\t00000000\t0\t0\t0",
			"sys/class/net/bond0/speed":        "2000",
			"sys/class/net/bond0/bonding/mode": "802.3ad 4",
		}), Resources{4, 2.4, 8, 2000, 0}},
		{"IPv6 alone", with(bare, tree{
			"proc/self/net/route": "Iface",
			"proc/self/net/ipv6_route": zeros + " 00 " + zeros + " 00 " + zeros + " ffffffff 1 0 00200200 lo\n" +
				"fe80" + zeros[4:] + " 40 " + zeros + " 00 " + zeros + " 00000100 1 0 00000001 eth0\n" +
				zeros + " 00 " + zeros + " 00 fe80" + zeros[4:] + " 00000400 1 0 00000003 eth1",
		}), Resources{4, 2.4, 8, 10000, 0}},
		{"no route", with(bare, tree{"proc/self/net/route": "Iface"}), Resources{4, 2.4, 8, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.tree.limits(t, "259:0").Read(); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

const zeros = "00000000000000000000000000000000"

// TestLimitsOfVolumes tests a folder on a volume of two partitions, with a limit on one of their disks.
func TestLimitsOfVolumes(t *testing.T) {
	volumes := with(bare, second, tree{
		"sys/dev/block/253:0":                  "->../../devices/virtual/dm-0",
		"sys/dev/block/8:2":                    "->../../devices/ata1/sda/sda2",
		"sys/dev/block/8:17":                   "->../../devices/ata2/sdb/sdb1",
		"sys/dev/block/8:16":                   "->../../devices/ata2/sdb",
		"sys/devices/virtual/dm-0/dev":         "253:0",
		"sys/devices/ata1/sda/dev":             "8:0",
		"sys/devices/ata1/sda/sda2/dev":        "8:2",
		"sys/devices/ata2/sdb/dev":             "8:16",
		"sys/devices/ata2/sdb/sdb1/dev":        "8:17",
		"sys/devices/ata1/sda/sda2/partition":  "2",
		"sys/devices/ata2/sdb/sdb1/partition":  "1",
		"sys/devices/virtual/dm-0/slaves/sda2": "->../../../ata1/sda/sda2",
		"sys/devices/virtual/dm-0/slaves/sdb1": "->../../../ata2/sdb/sdb1",
		"sys/fs/cgroup/crawls.slice/io.max":    "8:16 wbps=125000",
	})
	for device, want := range map[string]float64{"253:0": 1, "8:17": 1, "8:16": 1, "8:2": 0, "": 0, "0:44": 0} {
		if got := volumes.limits(t, device).Read().DiskMbps; got != want {
			t.Errorf("on %q: %v Mb/s, want %v", device, got, want)
		}
	}
}

// TestHere tests that more than the number of processors is known of this machine.
func TestHere(t *testing.T) {
	l := NewLimits(t.TempDir())
	got := l.Read()
	t.Logf("%+v, device %s", got, l.device)
	if got.Cores <= 0 || got.Cores > 1<<16 || got.MemoryGB <= 0 || l.device == "" {
		t.Errorf("%+v, device %q", got, l.device)
	}
}

func FuzzFiles(f *testing.F) {
	f.Add("0::/a\n4:cpu,cpuacct:/b", "35 25 0:30 / /sys rw - cgroup2 c rw", "0-3,7")
	f.Add("4:cpu:/..", `35 25 0:30 /\04 /x\040y - cgroup c rw,cpu`, "9-1,-,99999999999")
	f.Fuzz(func(t *testing.T, cgroup, mounts, list string) {
		l := tree{"proc/self/cgroup": cgroup, "proc/self/mountinfo": mounts,
			"proc/self/status": "Cpus_allowed_list:" + list}.limits(t, "8:0")
		if got := l.Read(); got.Cores <= 0 {
			t.Errorf("%+v", got)
		}
	})
}
