package stats

import "math"

// UniformP is the chance that counts as uneven as these, or more, come of an even spread: the p-value of Pearson's
// chi-square test against equal shares. Each count should be expected to be 5 at least. It is 1 for less than two
// counts.
func UniformP(counts []int) float64 {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	mean, chi2 := float64(sum)/float64(len(counts)), 0.0
	for _, n := range counts {
		chi2 += (float64(n) - mean) * (float64(n) - mean) / mean
	}
	if sum == 0 || len(counts) < 2 {
		return 1
	}
	return ChiSquareP(chi2, len(counts)-1)
}

// ChiSquareP is the chance that a sum of df squared standard normal variables is chi2 or more.
func ChiSquareP(chi2 float64, df int) float64 {
	a, x := float64(df)/2, chi2/2
	if x <= 0 {
		return 1
	}
	lgamma, _ := math.Lgamma(a)
	scale := math.Exp(a*math.Log(x) - x - lgamma)
	if x < a+1 {
		return 1 - scale*gammaSeries(a, x)
	}
	return scale * gammaFraction(a, x)
}

// gammaSeries is the lower incomplete gamma function of a and x, divided by e^-x x^a. It converges soon for x < a+1.
func gammaSeries(a, x float64) float64 {
	term := 1 / a
	sum := term
	for n := 1.0; term > sum*1e-15; n++ {
		term *= x / (a + n)
		sum += term
	}
	return sum
}

// gammaFraction is the upper one, likewise, by Legendre's continued fraction, evaluated as Lentz does. It converges
// soon for x > a+1.
func gammaFraction(a, x float64) float64 {
	b := x + 1 - a
	c, d := math.Inf(1), 1/b
	h := d
	for n := 1.0; ; n++ {
		k := -n * (n - a)
		b += 2
		d = 1 / (k*d + b)
		c = b + k/c
		h *= c * d
		if math.Abs(c*d-1) < 1e-14 {
			return h
		}
	}
}
