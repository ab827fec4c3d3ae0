package main

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlot draws a picture twice: both have the curves' names, and the same bytes.
func TestPlot(t *testing.T) {
	data, err := os.ReadFile("testdata/two.plot.json")
	if err != nil {
		t.Fatal(err)
	}
	draw := func() (pngs, svg []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "two.plot.json"), data, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := plotAll(dir); err != nil {
			t.Fatal(err)
		}
		if pngs, err = os.ReadFile(filepath.Join(dir, "two.png")); err != nil {
			t.Fatal(err)
		}
		if svg, err = os.ReadFile(filepath.Join(dir, "two.svg")); err != nil {
			t.Fatal(err)
		}
		return pngs, svg
	}
	pngs, svg := draw()
	if image, err := png.Decode(bytes.NewReader(pngs)); err != nil || image.Bounds().Dx() < 2*image.Bounds().Dy() {
		t.Errorf("the PNG is %v, %v: not two panels beside each other", image.Bounds(), err)
	}
	for _, name := range []string{"LAN", "WAN", "single", "speed (f/T)"} {
		if !bytes.Contains(svg, []byte(name)) {
			t.Errorf("%q is not in the SVG", name)
		}
	}
	if again, svgAgain := draw(); !bytes.Equal(pngs, again) || !bytes.Equal(svg, svgAgain) {
		t.Error("the same picture is other bytes")
	}
}

func TestNothingToPlot(t *testing.T) {
	if err := plotAll(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no *.plot.json in ") {
		t.Error(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.plot.json"), []byte(`{"columns":`), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := plotAll(dir); err == nil || !strings.Contains(err.Error(), "x.plot.json: unexpected end") {
		t.Error(err)
	}
}
