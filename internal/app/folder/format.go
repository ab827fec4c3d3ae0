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

// Format is the version of the format of a crawl's folder. It is raised when an older kumo would damage or misread
// files of a newer one. New members of JSON objects in lists need no new version: readers ignore unknown members.
const Format = 1

// FormatName is the file with the versions of the format and of the kumo that wrote it. Every version of kumo must be
// able to read this file, so its format is fixed. A folder without it has format 1.
var FormatName = filepath.Join("state", "format")

const formatText = "format: %d\nkumo: %s\n"

// ErrFormat means that a newer kumo wrote the folder.
var ErrFormat = errors.New("the crawl was written by a newer kumo")

// CheckFormat returns an error if the folder has a newer format. Call it before reading or writing anything else in the
// folder.
func CheckFormat(dir string) error {
	format, kumo, err := readFormat(dir)
	if err != nil || format <= Format {
		return nil //nolint:nilerr // a damaged file says nothing; see FormatFault
	}
	err = advice.Usage("open %s: %w: it has format %d, of kumo %s, and this is kumo %s, which reads formats up to %d",
		dir, ErrFormat, format, kumo, settings.Version, Format)
	return advice.With(err, fmt.Sprintf("use kumo %s or a newer one; nothing in the folder was changed", kumo))
}

// FormatFault returns an error if the format file is damaged. The next run or repair rewrites it.
func (f *Folder) FormatFault() error {
	_, _, err := readFormat(f.Dir)
	return err
}

// readFormat returns format 1 and no kumo version if there is no file.
func readFormat(dir string) (format int, kumo string, err error) {
	name := filepath.Join(dir, FormatName)
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return 1, "", nil
	}
	text, whole := settings.ReadChecked(name)
	if n, _ := fmt.Sscanf(string(text), formatText, &format, &kumo); !whole || n < 2 {
		return 0, "", errors.New("unexpected content")
	}
	return format, kumo, nil
}

// WriteFormat writes the format file unless it is intact and has the current format.
func (f *Folder) WriteFormat() error {
	if format, kumo, err := readFormat(f.Dir); err == nil && format == Format && kumo != "" {
		return nil
	}
	return f.Replace(FormatName, settings.AppendChecksum(fmt.Appendf(nil, formatText, Format, settings.Version)))
}
