package model

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
)

// columns are the columns of samples in CSV, and their field names in JSON.
var columns = []string{"node", "cores", "ghz", "memory_gb", "network_mbps", "disk_mbps", "urls", "seconds"}

// WriteCSV writes samples as CSV, with a header: node, cores, ghz, memory_gb, network_mbps, disk_mbps, urls, seconds.
func WriteCSV(w io.Writer, samples []Sample) error {
	c := csv.NewWriter(w)
	if err := c.Write(columns); err != nil {
		return err
	}
	for _, s := range samples {
		line := []string{s.Node}
		for _, f := range s.facts() {
			line = append(line, strconv.FormatFloat(f, 'g', -1, 64))
		}
		line = append(line, strconv.Itoa(s.URLs), strconv.FormatFloat(s.Seconds, 'g', -1, 64))
		if err := c.Write(line); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// ReadCSV yields the samples in the format of WriteCSV. It stops at the first error, which contains the line number.
func ReadCSV(r io.Reader) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		c := csv.NewReader(r)
		c.FieldsPerRecord = len(columns)
		c.ReuseRecord = true
		header, err := c.Read()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			yield(Sample{}, fmt.Errorf("samples as CSV: %w", err))
			return
		case !slices.Equal(header, columns):
			yield(Sample{}, fmt.Errorf("samples as CSV: header is %q, want %q", header, columns))
			return
		}
		for {
			fields, err := c.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			var s Sample
			if err == nil {
				if s, err = parse(fields); err != nil {
					line, _ := c.FieldPos(0)
					err = fmt.Errorf("line %d: %w", line, err)
				}
			}
			if err != nil {
				yield(Sample{}, fmt.Errorf("samples as CSV: %w", err))
				return
			}
			if !yield(s, nil) {
				return
			}
		}
	}
}

func parse(fields []string) (s Sample, err error) {
	s.Node = fields[0]
	for i, to := range []*float64{&s.Cores, &s.GHz, &s.MemoryGB, &s.NetworkMbps, &s.DiskMbps} {
		if *to, err = strconv.ParseFloat(fields[1+i], 64); err != nil {
			return s, fmt.Errorf("%s: %w", columns[1+i], err)
		}
	}
	if s.URLs, err = strconv.Atoi(fields[6]); err != nil {
		return s, fmt.Errorf("urls: %w", err)
	}
	if s.Seconds, err = strconv.ParseFloat(fields[7], 64); err != nil {
		return s, fmt.Errorf("seconds: %w", err)
	}
	return s, s.Check()
}

// WriteJSON writes samples as JSON Lines, with the fields of WriteCSV.
func WriteJSON(w io.Writer, samples []Sample) error {
	e := json.NewEncoder(w)
	for _, s := range samples {
		if err := e.Encode(s); err != nil {
			return err
		}
	}
	return nil
}

// maxLine is the maximum length of a JSON line, in bytes.
const maxLine = 64 << 10

// ReadJSON yields the samples in the format of WriteJSON. It stops at the first error, which contains the line number.
func ReadJSON(r io.Reader) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxLine)
		number := 0
		for lines.Scan() {
			number++
			var s Sample
			if len(lines.Bytes()) == 0 {
				continue
			}
			err := json.Unmarshal(lines.Bytes(), &s)
			if err == nil {
				err = s.Check()
			}
			if err != nil {
				yield(Sample{}, fmt.Errorf("samples as JSON: line %d: %w", number, err))
				return
			}
			if !yield(s, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(Sample{}, fmt.Errorf("samples as JSON: line %d: %w", number+1, err))
		}
	}
}
