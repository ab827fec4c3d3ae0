package netlab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// diskRoot is the folder in which the disks of all labs' hosts are mounted, each under the name of its host's
// namespace.
const diskRoot = "/run/kumolab"

// A disk is a file that serves as a block device with a limited transfer rate.
type disk struct {
	dir           string // mount point
	number        string // number of the device, such as "7:0"
	writtenBefore int64  // bytes that others had written to the device before
}

// Disk gives the host its own disk of the given size in bytes, and returns its folder. Reads and writes are each
// limited to bits per second; 0: unlimited. Call it once. The file system has no journal, which would write most data
// twice.
func (h *Host) Disk(size int64, bits int) (dir string, err error) {
	dir, err = h.makeDisk(size, bits)
	if err != nil {
		return "", fmt.Errorf("disk of %s: %w", h.Name, err)
	}
	return dir, nil
}

func (h *Host) makeDisk(size int64, bits int) (dir string, err error) {
	if h.disk != nil {
		return "", errors.New("it has one")
	}
	image, err := os.CreateTemp("", "disk")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(image.Name()) }() // the device keeps the file open
	defer image.Close()
	if err := image.Truncate(size); err != nil {
		return "", err
	}
	if err := program("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-E", "lazy_itable_init=0", "-m", "0",
		image.Name()); err != nil {
		return "", err
	}
	losetup, err := tool("losetup")
	if err != nil {
		return "", err
	}
	said, err := exec.Command(losetup, "--find", "--show", image.Name()).Output()
	if err != nil {
		return "", fmt.Errorf("losetup: %w", err)
	}
	device := strings.TrimSpace(string(said))
	defer func() { err = errors.Join(err, program("losetup", "-d", device)) }() // takes effect when it is unmounted
	dir = filepath.Join(diskRoot, h.space)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	if err := unix.Mount(device, dir, "ext4", unix.MS_NOATIME, ""); err != nil {
		return "", fmt.Errorf("mount %s: %w", device, err)
	}
	var is unix.Stat_t
	if err := unix.Stat(device, &is); err != nil {
		return "", err
	}
	h.disk = &disk{dir: dir, number: fmt.Sprintf("%d:%d", unix.Major(is.Rdev), unix.Minor(is.Rdev))}
	if h.disk.writtenBefore, err = h.disk.written(); err != nil {
		return "", err
	}
	return dir, throttle(h.disk.number, bits)
}

// throttle limits the rate of a device for this process's control group, and for the kernel threads that write back
// cached data.
func throttle(number string, bits int) error {
	own, err := ownGroup("blkio")
	if err != nil {
		return err
	}
	all, err := groupsOf("blkio")
	if err != nil {
		return err
	}
	for _, group := range []string{own, all} {
		for _, way := range []string{"read", "write"} {
			file := filepath.Join(group, "blkio.throttle."+way+"_bps_device")
			if err := write(file, number+" "+strconv.Itoa(bits/8)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *disk) written() (int64, error) {
	stat, err := os.ReadFile(filepath.Join("/sys/dev/block", d.number, "stat"))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat))
	if len(fields) < 7 {
		return 0, fmt.Errorf("statistics of device %s have %d fields", d.number, len(fields))
	}
	sectors, err := strconv.ParseInt(fields[6], 10, 64)
	return sectors*512 - d.writtenBefore, err
}

// removeDisks removes the disks of the selected hosts. It first removes the limit of each device: the device may be
// reused by another host, and a limit would slow down the remaining writes.
func removeDisks(which func(space string) bool) error {
	found, err := filepath.Glob(filepath.Join(diskRoot, namePrefix+"*"))
	if err != nil {
		return err
	}
	var failed []error
	for _, dir := range found {
		if !which(filepath.Base(dir)) {
			continue
		}
		var at, above unix.Stat_t
		if unix.Stat(dir, &at) == nil && unix.Stat(diskRoot, &above) == nil && at.Dev != above.Dev {
			number := fmt.Sprintf("%d:%d", unix.Major(at.Dev), unix.Minor(at.Dev))
			failed = append(failed, throttle(number, 0), unix.Unmount(dir, unix.MNT_DETACH))
		}
		failed = append(failed, os.Remove(dir))
	}
	return errors.Join(failed...)
}
