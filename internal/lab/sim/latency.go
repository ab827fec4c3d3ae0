package sim

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// A Matrix is measured latency between locations. Machines are assigned to its rows in turn; the registry is in the
// first.
type Matrix struct{ oneWay [][]time.Duration }

func (m *Matrix) between(from, to int) time.Duration {
	return m.oneWay[(from+1)%len(m.oneWay)][(to+1)%len(m.oneWay)]
}

// ReadMatrix reads a file of round-trip times: a row a line, separated by tabs or spaces, in milliseconds, or in
// seconds if none is above 30. The mean replaces missing times (0 or less) and those of a location to itself.
func ReadMatrix(file string) (*Matrix, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var rows [][]float64
	for line := range strings.Lines(string(data)) {
		row, err := readRow(line)
		if err != nil {
			return nil, fmt.Errorf("read latencies %s line %d: %w", file, len(rows)+1, err)
		}
		if len(row) > 0 {
			rows = append(rows, row)
		}
	}
	m, err := newMatrix(rows)
	if err != nil {
		return nil, fmt.Errorf("read latencies %s: %w", file, err)
	}
	return m, nil
}

func readRow(line string) ([]float64, error) {
	var row []float64
	for _, field := range strings.Fields(line) {
		v, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return nil, err
		}
		row = append(row, v)
	}
	return row, nil
}

func newMatrix(rows [][]float64) (*Matrix, error) {
	var sum, most float64
	n := 0
	for _, row := range rows {
		if len(row) != len(rows) {
			return nil, fmt.Errorf("%d lines, but a line of %d numbers: the matrix is not square", len(rows), len(row))
		}
		for _, v := range row {
			most = max(most, v)
			if v > 0 {
				sum, n = sum+v, n+1
			}
		}
	}
	if n == 0 {
		return nil, errors.New("no latency above 0")
	}
	unit := float64(time.Millisecond)
	if most <= 30 {
		unit = float64(time.Second)
	}
	m := &Matrix{}
	for i, row := range rows {
		times := make([]time.Duration, len(row))
		for j, v := range row {
			if v <= 0 || i == j {
				v = sum / float64(n)
			}
			times[j] = time.Duration(v * unit / 2)
		}
		m.oneWay = append(m.oneWay, times)
	}
	return m, nil
}
