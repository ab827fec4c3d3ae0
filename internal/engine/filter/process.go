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

// A process runs the program once.
type process struct {
	in        io.WriteCloser
	out       *bufio.Reader
	killAll   func()          // it and its children, at once
	done      <-chan struct{} // it is no more, and what was its parent has said so
	exitState func() string   // it ended, once it is done
	tail      []byte          // of its output, without a line break; valid once line has returned an error

	closing sync.Once
}

// patience is how long a process has to end by itself once its input has ended.
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

// line reads the next line that is not empty. It holds until the next is read.
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

// longLine reads a line, however it is buffered. The end of what is written is no line without a line break.
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

// unfinished describes output after the last line break, which nothing reads: a program that forgets the line break
// looks like one that hangs.
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
	p.closing.Do(func() { _ = p.in.Close() }) // nothing is kept in it
}

// stop ends the process's input, gives it so long to end by itself, and returns how it has ended.
func (p *process) stop(patience time.Duration) string {
	if patience > 0 {
		go p.closeInput() // which may wait for who writes
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
