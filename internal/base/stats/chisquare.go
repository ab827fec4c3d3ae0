package stats

import "math"

// UniformP returns the p-value of Pearson's chi-square test of counts against equal shares: the probability that a
// uniform distribution yields counts at least this uneven. Each expected count should be at least 5. It returns 1 for
// fewer than two counts.
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

// ChiSquareP returns the probability that the sum of df squared standard normal variables is at least chi2.
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

// gammaSeries computes the lower incomplete gamma function of a and x, divided by e^-x x^a. The series converges fast
// for x < a+1.
func gammaSeries(a, x float64) float64 {
	term := 1 / a
	sum := term
	for n := 1.0; term > sum*1e-15; n++ {
		term *= x / (a + n)
		sum += term
	}
	return sum
}

// gammaFraction computes the upper incomplete gamma function, likewise divided, by Legendre's continued fraction and
// Lentz's method. It converges fast for x > a+1.
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
