package filter

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// A process is one running instance of the program.
type process struct {
	in        io.WriteCloser
	out       *bufio.Reader
	killAll   func()          // kills the process and its children
	done      <-chan struct{} // closed when the process has ended and was waited for
	exitState func() string   // how the process ended, valid after done
	tail      []byte          // output after the last line break; valid once line has returned an error

	closing sync.Once
}

// patience is how long a process has to exit after the end of its input.
const patience = time.Second

// hello writes the first line.
func (p *process) hello(h *Hello) error {
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return p.write(append(line, '\n'))
}

func (p *process) write(lines []byte) error {
	_, err := p.in.Write(lines)
	return err
}

// line reads the next non-empty line. It is valid until the next call.
func (p *process) line() ([]byte, error) {
	for {
		line, err := p.longLine()
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

// longLine reads a line that may be longer than the buffer. Output at the end without a line break is not a line.
func (p *process) longLine() ([]byte, error) {
	line, err := p.out.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		p.setTail(line, err)
		return line, err
	}
	long := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(long) > MaxLine {
			return nil, fmt.Errorf("%w: a line has more than %d bytes: %s", ErrInvalidAnswer, MaxLine, quoted(long))
		}
		line, err = p.out.ReadSlice('\n')
		long = append(long, line...)
	}
	p.setTail(long, err)
	return long, err
}

func (p *process) setTail(line []byte, err error) {
	if err != nil {
		p.tail = bytes.Clone(line[:min(len(line), 4*maxQuoted)])
	}
}

// unfinished describes output after the last line break. Nothing reads it, so a program that forgets the line break
// seems to hang.
func (p *process) unfinished() string {
	if tail := bytes.TrimSpace(p.tail); len(tail) > 0 {
		return "; it wrote " + quoted(tail) + " without a line break"
	}
	return ""
}

// kill ends the process and its children.
func (p *process) kill() {
	p.killAll()
	p.closeInput()
}

func (p *process) closeInput() {
	p.closing.Do(func() { _ = p.in.Close() }) // nothing is buffered
}

// stop closes the process's input, gives it time to exit, kills it otherwise, and returns how it ended.
func (p *process) stop(patience time.Duration) string {
	if patience > 0 {
		go p.closeInput() // Close may wait for a concurrent write
		late := time.NewTimer(patience)
		defer late.Stop()
		select {
		case <-p.done:
		case <-late.C:
		}
	}
	p.kill()
	<-p.done
	return p.exitState()
}
