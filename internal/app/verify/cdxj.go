package verify

import (
	"bytes"
	"fmt"
	"strings"

	"kumo/internal/state/store/warc"
)

const mergedIndex = "index.cdxj"

// indexes reads the index of each WARC file, and the merged index.
func (v *verifier) indexes() error {
	var files, lines int64
	for number := range v.files.all {
		name, grows := v.indexOf(number)
		n, err := v.index(name, grows, number)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		v.files.all[number].lines = n
		files, lines = files+1, lines+n
	}
	v.addCount(checkCDXJ, files, "files")
	v.addCount(checkCDXJ, lines, "lines")
	if v.cfg.NoLists || v.cfg.Incomplete {
		return nil
	}
	n, err := v.index(mergedIndex, false, allFiles)
	if err != nil {
		return fmt.Errorf("read %s: %w", mergedIndex, err)
	}
	v.addCount(checkCDXJ, n, "lines in "+mergedIndex)
	return nil
}

// indexOf returns the name of a WARC file's index. While the file grows, the index is in order of arrival.
func (v *verifier) indexOf(number int) (name string, grows bool) {
	final := v.files.path(number)
	if _, err := v.Disk.Size(v.path(final)); err != nil {
		grows = true
	}
	stem, _, _ := strings.Cut(final, ".warc")
	name = stem + ".cdxj"
	if grows {
		name += openSuffix
	}
	if _, err := v.Disk.Size(v.path(name)); err != nil {
		v.files.all[number].unindexed = true
		v.fault(Fault{Check: checkCDXJ, File: name, Offset: -1, What: "the index is missing",
			Remedy: "it can be rebuilt from its WARC file"})
	}
	return name, grows
}

const allFiles = -1

// index reads the index of one WARC file, or the merged one (allFiles).
func (v *verifier) index(name string, grows bool, of int) (int64, error) {
	var last []byte
	return v.eachLine(checkCDXJ, name, grows, func(l line) error {
		if !grows && bytes.Compare(last, l.text) >= 0 {
			v.fault(Fault{Check: checkCDXJ, File: name, Offset: l.at, What: "the line does not sort after the previous one: " +
				"the index is not sorted",
				Remedy: "sort it bytewise (LC_ALL=C sort)"})
		}
		last = append(last[:0], l.text...)
		x, err := warc.ParseIndexLine(l.text)
		if err != nil {
			return err
		}
		f := fact{At: l.at, File: v.files.numberOf(x.File), Offset: x.Offset, Length: x.Length, Time: x.Time.UnixMicro(),
			Status: x.Status, Words: hashOf(string(l.text))}
		if _, ok := parseDigest(x.Digest); !ok {
			return fmt.Errorf("%q is not a digest", x.Digest)
		}
		f.Sum = hashOf(x.Digest)
		if x.MIME == "warc/revisit" {
			f.Flags |= flagRevisit
		}
		if of == allFiles {
			v.files.all[f.File].merged++
			return asStop(v.claim(x.URL, kindIndex, f))
		}
		if f.File != of {
			return fmt.Errorf("the line refers to %s, which has its own index", x.File)
		}
		return asStop(v.claim(x.URL, kindLine, f))
	})
}
