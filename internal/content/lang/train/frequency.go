package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
)

// A frequency is a word and its occurrences per million words.
type frequency struct {
	word       string
	perMillion float64
}

// lists are the word lists of the languages that are distinguished by words, most frequent words first.
type lists map[string][]frequency

// loadLists loads the lists for all finer plans.
func loadLists(dir string) (lists, error) {
	out := lists{}
	for _, p := range plans {
		for _, lang := range p.known {
			if !p.finer {
				continue
			}
			path := filepath.Join(dir, "wordfreq", "small_"+lang+".msgpack.gz")
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("read words of %s: %w", lang, err)
			}
			if out[lang], err = frequencies(data); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return out, nil
}

// frequencies parses a list of the Python package wordfreq: MessagePack with a header and lists of words. The words in
// list n have a frequency of n centibels below 1.
func frequencies(data []byte) ([]frequency, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("unpack word list: %w", err)
	}
	unpacked, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("unpack word list: %w", err)
	}
	p := &msgpackReader{rest: unpacked}
	bins := p.length(0x90, 0xdc)
	if p.skip("\x82\xa6format\xa2cB\xa7version\x01"); p.err != nil {
		return nil, p.err
	}
	var out []frequency
	for n := range bins - 1 {
		often := 1e6 * math.Pow(10, -float64(n)/100)
		for range p.length(0x90, 0xdc) {
			out = append(out, frequency{p.str(), often})
		}
	}
	return out, p.err
}

var errList = errors.New("not a list of word frequencies, version 1 in centibels")

// msgpackReader parses the subset of MessagePack that lists use. It keeps the first error.
type msgpackReader struct {
	rest []byte
	err  error
}

// read splits off n bytes; they are 0 after an error.
func (p *msgpackReader) read(n int) []byte {
	if p.err != nil || n > len(p.rest) {
		p.err = errList
		return make([]byte, min(n, 2))
	}
	out := p.rest[:n]
	p.rest = p.rest[n:]
	return out
}

func (p *msgpackReader) skip(want string) {
	if string(p.read(len(want))) != want {
		p.err = errList
	}
}

// length reads the header of a list or string: up to 15 items in the byte itself, or 16 bits after it.
func (p *msgpackReader) length(short, long byte) int {
	switch b := p.read(1)[0]; {
	case b&0xf0 == short:
		return int(b & 0x0f)
	case b == long:
		return int(binary.BigEndian.Uint16(p.read(2)))
	}
	p.err = errList
	return 0
}

// str reads a string of up to 255 bytes.
func (p *msgpackReader) str() string {
	n := p.read(1)[0]
	switch {
	case n&0xe0 == 0xa0:
		return string(p.read(int(n & 0x1f)))
	case n == 0xd9:
		return string(p.read(int(p.read(1)[0])))
	}
	p.err = errList
	return ""
}
