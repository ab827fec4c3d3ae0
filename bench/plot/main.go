// Command plot draws the pictures that the experiments of kumo sim leave in a folder:
//
//	kumo sim dspider --out DIR
//	go run -C bench/plot . DIR
//
// For each file NAME.plot.json it writes NAME.png and NAME.svg to the same folder.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const suffix = ".plot.json"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run -C bench/plot . DIR\n\nDraws each NAME"+suffix+" in the folder DIR as "+
			"NAME.png and NAME.svg.")
		os.Exit(2)
	}
	if err := plotAll(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

func plotAll(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no *%s in %s (relative paths begin at bench/plot); create some with kumo sim dspider --out DIR",
			suffix, dir)
	}
	for _, file := range files {
		if err := plotOne(file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func plotOne(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var p picture
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	if p.Columns < 1 || len(p.Panels) == 0 {
		return fmt.Errorf("bad layout: %d panels in %d columns", len(p.Panels), p.Columns)
	}
	for _, format := range formats {
		var b bytes.Buffer
		if err := p.draw(&b, format); err != nil {
			return err
		}
		out := strings.TrimSuffix(file, suffix) + "." + format
		if err := os.WriteFile(out, b.Bytes(), 0o666); err != nil {
			return err
		}
		fmt.Println(out)
	}
	return nil
}
