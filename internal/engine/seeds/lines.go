package seeds

import (
	"bytes"
	"strings"

	"kumo/internal/base/advice"
)

// maxLine is how many bytes of a line are kept, more than any URL may have.
const maxLine = 64 << 10

// A lineReader splits its input into lines of any length, without their terminators. It drops a leading byte order
// mark. The lines of a block are parts of one copy of it.
type lineReader struct {
	each   func(line string, end int64) error // end is the offset behind the line
	offset int64                              // of the next byte
	more   bool                               // the next byte is not the first of the file
	rest   []byte                             // of an unfinished line, cut at maxLine
}

func (l *lineReader) write(block []byte) error {
	if !l.more && len(l.rest) == 0 {
		if bytes.HasPrefix(block, []byte{0xff, 0xfe}) || bytes.HasPrefix(block, []byte{0xfe, 0xff}) {
			return advice.Usage("the seed file is UTF-16: save it as UTF-8")
		}
	}
	for {
		i := bytes.IndexByte(block, '\n')
		if i < 0 || len(l.rest) == 0 {
			break
		}
		l.appendPart(block[:i])
		if err := l.line(string(l.rest), i+1); err != nil {
			return err
		}
		l.rest, block = l.rest[:0], block[i+1:]
	}
	last := bytes.LastIndexByte(block, '\n')
	if last >= 0 {
		whole := string(block[:last+1])
		for whole != "" {
			line, after, _ := strings.Cut(whole, "\n")
			if err := l.line(line, len(line)+1); err != nil {
				return err
			}
			whole = after
		}
	}
	l.appendPart(block[last+1:])
	l.offset += int64(len(block) - last - 1)
	return nil
}

func (l *lineReader) appendPart(part []byte) {
	l.rest = append(l.rest, part[:min(len(part), maxLine-len(l.rest))]...)
}

// line passes a line on; n of its bytes are new.
func (l *lineReader) line(line string, n int) error {
	if l.offset += int64(n); !l.more {
		line, l.more = strings.TrimPrefix(line, "\ufeff"), true
	}
	return l.each(strings.TrimSuffix(line, "\r"), l.offset)
}

// end passes on a last line without a terminator.
func (l *lineReader) end() error {
	if len(l.rest) == 0 {
		return nil
	}
	line := string(l.rest)
	l.rest = l.rest[:0]
	return l.line(line, 0)
}
