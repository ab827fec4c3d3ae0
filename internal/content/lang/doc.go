// Package lang tells which language a text is in: one of 27, or other.
//
// The script comes first, by counting letters. It decides Korean, Lao and Japanese with kana, and that a text is in
// none of the known languages. Where several languages share a script, a linear model over the text's letter n-grams
// and words decides, as in the hashed n-gram classifiers of Joulin et al., "Bag of Tricks for Efficient Text
// Classification" (2016), but without an embedding between, with one small model a script, and with many classes for
// what is other: a related language (Ukrainian, Galician, Javanese) is told from ours because it was learnt, not
// because it looks strange.
//
// Indonesian and Malay share their syllables and most of their words: once a text is in one of them, naive Bayes over
// how often words occur in each decides.
//
// The model is built by the command in train and embedded. Chinese is told by simplified or traditional letters, too.
// Languages are known in the script that they are mostly written in: Kazakh in Arabic letters is other.
//
// docs/decisions/language.md compares it with libraries.
package lang
