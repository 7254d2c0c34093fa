package model

import "math"

// Price is what tokens cost, in US dollars per million of them, which is the
// same as millionths of a dollar per token. The zero Price is free.
type Price struct {
	Input, Cached, Output float64
}

// Cost returns what was used in millionths of a US dollar, rounded up.
func (p Price) Cost(u Usage) int64 {
	cost := float64(u.Input-u.Cached)*p.Input + float64(u.Cached)*p.Cached + float64(u.Output)*p.Output
	return int64(math.Ceil(cost))
}

// Tokens returns how many tokens of an answer so many millionths of a dollar
// buy; 0 when they are free.
func (p Price) Tokens(millionths int64) int64 {
	if p.Output <= 0 {
		return 0
	}
	return int64(float64(millionths) / p.Output)
}
