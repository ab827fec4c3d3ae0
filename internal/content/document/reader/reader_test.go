package reader_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"kumo/internal/content/document"
	"kumo/internal/content/document/reader"
)

// pdf is a reader of PDF files that runs a function.
type pdf func(ctx context.Context, f document.File) (*document.Document, error)

func (p pdf) Read(ctx context.Context, f document.File, _ document.Limits) (*document.Document, error) {
	return p(ctx, f)
}

func TestRead(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	tests := []struct {
		name    string
		ctx     context.Context
		pdf     document.Reader
		body    string
		problem document.Problem
		detail  string
	}{
		{"nothing", t.Context(), nil, "", document.Unsupported, "no format"},
		{"a page", t.Context(), nil, "<!DOCTYPE html>", document.Unsupported, "no format"},
		{"no reader", t.Context(), nil, "%PDF-1.7", document.Unsupported, "no reader for pdf"},
		{"panic", t.Context(), pdf(func(context.Context, document.File) (*document.Document, error) {
			panic("index out of range")
		}), "%PDF-1.7", document.Crashed, "index out of range"},
		{"other error", t.Context(), pdf(func(context.Context, document.File) (*document.Document, error) {
			return nil, errors.New("no trailer")
		}), "%PDF-1.7", document.Broken, "no trailer"},
		{"timeout", ended, pdf(func(ctx context.Context, _ document.File) (*document.Document, error) {
			return nil, ctx.Err()
		}), "%PDF-1.7", document.Timeout, "context canceled"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := reader.New(reader.Config{PDF: tt.pdf})
			d, err := r.Read(tt.ctx, bytes.NewReader([]byte(tt.body)), document.Default())
			var known *document.Error
			if d != nil || !errors.As(err, &known) || known.Problem != tt.problem ||
				!strings.Contains(known.Error(), tt.detail) {
				t.Errorf("document %v, error %v, want %s with %q", d, err, tt.problem, tt.detail)
			}
		})
	}
}

func TestReadPDF(t *testing.T) {
	want := &document.Document{Format: document.PDF, Title: "A"}
	r := reader.New(reader.Config{PDF: pdf(func(context.Context, document.File) (*document.Document, error) {
		return want, nil
	})})
	got, err := r.Read(t.Context(), bytes.NewReader([]byte("%PDF-1.7")), document.Default())
	if got != want || err != nil {
		t.Error(got, err)
	}
}

func TestReadImage(t *testing.T) {
	d, err := reader.New(reader.Config{}).Read(t.Context(), bytes.NewReader([]byte("GIF89a\x40\x00\x20\x00")),
		document.Default())
	if err != nil || d.Format != document.GIF || len(d.Properties) != 2 {
		t.Error(d, err)
	}
}

// TestReadUntil reads a document when there is no time left.
func TestReadUntil(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	for _, body := range []string{"PK\x03\x04 and more", "\xFF\xD8\xFF\xE0 and more"} {
		_, err := reader.New(reader.Config{}).Read(ctx, bytes.NewReader([]byte(body)), document.Default())
		if p, _ := document.ProblemOf(err); p != document.Timeout {
			t.Errorf("%.4q: %v", body, err)
		}
	}
}
