// Package lang detects the language of a text: one of 27 languages, or other.
//
// The script is detected first, by counting letters. It decides Korean, Lao and Japanese with kana, and texts in none
// of the known languages.
//
// Where several languages share a script, a linear model over the letter n-grams and words of the text decides. It
// resembles the hashed n-gram classifiers of Joulin et al., "Bag of Tricks for Efficient Text Classification" (2016).
// It differs in three ways: there is no embedding, each script has a small model of its own, and other languages are
// many classes. So a related language (Ukrainian, Galician, Javanese) is recognized because the model was trained on
// it, not because its texts look unusual.
//
// Indonesian and Malay share their syllables and most of their words. For a text in either of them, naive Bayes over
// the word frequencies of both decides.
//
// Chinese is also classified as simplified or traditional. A language is known only in its main script: Kazakh in
// Arabic letters is other.
//
// The model is built by the command in train and embedded. docs/decisions/language.md compares the package with
// libraries.
package lang
