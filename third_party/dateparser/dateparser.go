// Package dateparser stands in for a library of the same path, which reads dates in words in two hundred languages and compiles
// its tables for that whenever a program starts. Of what imports it, kumo uses only a search that never asks it. So this one
// has the names that the importers need to compile, and finds nothing.
package dateparser

import (
	"errors"
	"time"
)

// A ParserType is one way to read a date.
type ParserType uint8

// The ways that are spoken of.
const (
	CustomFormat ParserType = iota
	AbsoluteTime
)

// A PreferredDateSource says which of several days a vague date means.
type PreferredDateSource uint8

// Past prefers days gone by.
const Past PreferredDateSource = 1

// A Configuration has the settings that are set.
type Configuration struct {
	PreferredDateSource PreferredDateSource
	StrictParsing       bool
}

// A Date is what was read.
type Date struct{ Time time.Time }

// A Parser reads nothing.
type Parser struct{ ParserTypes []ParserType }

// Parse always fails.
func (*Parser) Parse(*Configuration, string, ...string) (Date, error) {
	return Date{}, errors.New("dates in words are not read")
}
