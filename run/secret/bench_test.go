package secret

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// keys are secrets like those of model services.
func keys(count int) (names, values []string) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	random := rand.New(rand.NewPCG(1, 2))
	for i := range count {
		value := []byte("sk-")
		for range 45 {
			value = append(value, alphabet[random.IntN(len(alphabet))])
		}
		names, values = append(names, fmt.Sprintf("KEY_%d", i)), append(values, string(value))
	}
	return names, values
}

func BenchmarkMasker(b *testing.B) {
	const size = 1 << 20
	random := rand.New(rand.NewPCG(3, 4))
	letters := make([]byte, size)
	for i := range letters {
		letters[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[random.IntN(64)]
	}
	words := strings.Repeat(`2026-07-01T12:00:00Z INFO server: request GET /v1/runs?limit=10 took 1.25ms {"status":200,"task":"sk-4"}`+"\n", size/100)[:size]
	_, ten := keys(10)
	for _, bench := range []struct {
		name   string
		values []string
		text   string
	}{
		{"log/1 secret", ten[:1], words},
		{"log/10 secrets", ten, words},
		{"base64/1 secret", ten[:1], string(letters)},
		{"base64/10 secrets", ten, string(letters)},
		{"base64/a value of 64 KiB", []string{string(letters[:MaxValue])}, words},
		{"a hit in 1 KiB", ten, strings.Repeat(words[:1000]+ten[3], size/1000)[:size]},
		{"only hits", ten, strings.Repeat(strings.Join(ten, ""), size/400)[:size]},
		{"worst/repeated start", []string{strings.Repeat("a", 1000) + "b", "aaaa"}, strings.Repeat("a", size)},
		{"worst/broken starts", []string{strings.Repeat("ab", 1000) + "c"}, strings.Repeat(strings.Repeat("ab", 1000), size/2000)},
		{"worst/heads only", ten, strings.Repeat("sk-A"+"sk-B"+"sk-c", size/12)},
	} {
		set := newSet(named(bench.values))
		text := []byte(bench.text)
		for _, piece := range []int{16, chunk} {
			b.Run(fmt.Sprintf("%s/%d bytes at once", bench.name, piece), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					m := set.Masker(io.Discard)
					for rest := text; len(rest) > 0; {
						n := min(piece, len(rest))
						if _, err := m.Write(rest[:n]); err != nil {
							b.Fatal(err)
						}
						rest = rest[n:]
					}
					if err := m.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkNewSet(b *testing.B) {
	_, ten := keys(10)
	large := strings.Repeat("0123456789abcdefghij ABCDEFGHIJKLMNOP-_+/=. ðþ \"&<>\n", MaxValue/54)
	for _, bench := range []struct {
		name   string
		values []string
	}{
		{"1 secret", ten[:1]},
		{"10 secrets", ten},
		{"lines of 64 KiB", []string{large}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				set := newSet(named(bench.values))
				b.ReportMetric(float64(len(set.contents().search.nodes)), "nodes")
			}
		})
	}
}
