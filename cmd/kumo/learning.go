package main

import (
	"github.com/spf13/pflag"

	"kumo/internal/app/wire/cluster"
)

// learningFlags are the flags of the network of balance/paper.
type learningFlags cluster.Learning

// learningNames are the names of learningFlags.
var learningNames = []string{"hidden-units", "learning-rate", "error-threshold"}

func newLearningFlags() learningFlags { return learningFlags(cluster.PaperLearning()) }

// bind adds the flags; suffix ends their help texts.
func (l *learningFlags) bind(f *pflag.FlagSet, suffix string) {
	f.IntVar(&l.Hidden, learningNames[0], l.Hidden, "with balance/paper: `N` units in the network's hidden layer"+suffix)
	f.Float64Var(&l.Rate, learningNames[1], l.Rate, "with balance/paper: learning `RATE` of back-propagation"+suffix)
	f.Float64Var(&l.Threshold, learningNames[2], l.Threshold, "with balance/paper: train the network until its mean "+
		"error is below `E`"+suffix)
}

func (l *learningFlags) learning() (*cluster.Learning, error) {
	of := cluster.Learning(*l)
	if err := of.Check(); err != nil {
		return nil, usagef("%w", err)
	}
	return &of, nil
}

// checkUnused returns an error if one of the flags was given, though the strategy is another one.
func (l *learningFlags) checkUnused(given *pflag.FlagSet, strategy string) error {
	for _, name := range learningNames {
		if given.Changed(name) {
			return usagef("--%s is for --strategy balance/paper, and this is %s", name, strategy)
		}
	}
	return nil
}
