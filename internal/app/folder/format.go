package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kumo/internal/base/advice"
	"kumo/internal/base/settings"
)

// Format is the version of the form in which a crawl lies in its folder. It is raised when an older kumo would damage
// or misread what a newer one has written there. New members of the objects in lists need no new version: readers
// ignore members that they do not know.
const Format = 1

// FormatName is the file with the format's version, and that of the kumo that has written it. Its form is fixed: every
// kumo, however old, must be able to read it. A folder without it has format 1.
var FormatName = filepath.Join("state", "format")

const formatText = "format: %d\nkumo: %s\n"

// ErrFormat is a folder of a newer kumo.
var ErrFormat = errors.New("the crawl was written by a newer kumo")

// CheckFormat returns an error if the folder is in a newer format. Whoever opens a folder calls it before anything else
// in the folder is read or written.
func CheckFormat(dir string) error {
	format, kumo, err := readFormat(dir)
	if err != nil || format <= Format {
		return nil //nolint:nilerr // a damaged file says nothing; see FormatFault
	}
	err = advice.Usage("open %s: %w: it has format %d, of kumo %s, and this is kumo %s, which reads formats up to %d",
		dir, ErrFormat, format, kumo, settings.Version, Format)
	return advice.With(err, fmt.Sprintf("use kumo %s or a newer one; nothing in the folder was changed", kumo))
}

// FormatFault returns an error if the file with the format is damaged. The next run or repair writes it anew.
func (f *Folder) FormatFault() error {
	_, _, err := readFormat(f.Dir)
	return err
}

// readFormat returns format 1 and no version of kumo if there is no file.
func readFormat(dir string) (format int, kumo string, err error) {
	name := filepath.Join(dir, FormatName)
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return 1, "", nil
	}
	text, whole := settings.ReadChecked(name)
	if n, _ := fmt.Sscanf(string(text), formatText, &format, &kumo); !whole || n < 2 {
		return 0, "", errors.New("it is not as kumo wrote it")
	}
	return format, kumo, nil
}

// WriteFormat writes the file with the format unless it is there.
func (f *Folder) WriteFormat() error {
	if format, kumo, err := readFormat(f.Dir); err == nil && format == Format && kumo != "" {
		return nil
	}
	return f.Replace(FormatName, settings.AppendChecksum(fmt.Appendf(nil, formatText, Format, settings.Version)))
}
