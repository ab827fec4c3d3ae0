// Command train builds the model that package lang embeds, from a folder of texts that fetch.sh prepares:
//
//	sh internal/content/lang/train/fetch.sh /path/to/corpus
//	go run ./internal/content/lang/train -corpus /path/to/corpus -out internal/content/lang/model.bin
//
// The output is deterministic: the same texts yield the same bytes on the same architecture and Go release. Files are
// read in the order of their paths, and the random generator has a fixed seed. README.md lists the sources of the texts
// and their licenses.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"sync"

	"kumo/internal/content/lang/ngram"
)

func main() {
	log.SetFlags(0)
	corpus := flag.String("corpus", "", "folder prepared by fetch.sh")
	out := flag.String("out", "model.bin", "model file to write")
	samples := flag.Int("samples", 800_000, "texts per round for the largest classifier")
	rounds := flag.Int("rounds", 2, "rounds of training")
	list := flag.Bool("list", false, "only list the amount of text in each language")
	flag.Parse()
	if err := run(*corpus, *out, *samples, *rounds, *list); err != nil {
		log.Fatal(err)
	}
}

func run(corpus, out string, samples, rounds int, list bool) error {
	texts, err := load(corpus)
	if err != nil {
		return err
	}
	if list {
		texts.list(os.Stdout)
		return nil
	}
	words, err := loadLists(corpus)
	if err != nil {
		return err
	}
	model := &ngram.Model{Classifiers: make([]*ngram.Classifier, len(plans))}
	var wg sync.WaitGroup
	for i, p := range plans {
		wg.Go(func() {
			if p.finer {
				model.Classifiers[i] = p.bayes(words)
			} else {
				model.Classifiers[i] = p.build(texts, int(float64(samples)*p.sampleShare), rounds)
			}
		})
	}
	wg.Wait()
	f, err := os.Create(out)
	if err != nil {
		return fmt.Errorf("create model file: %w", err)
	}
	if err := model.Write(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close model file: %w", err)
	}
	return nil
}
