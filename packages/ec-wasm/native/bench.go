package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"time"

	"github.com/klauspost/reedsolomon"
)

// request asks for one measurement: the mean time of `Iterations` calls.
type request struct {
	// Variant is "avx2" (no GFNI, no AVX-512) or "default" (whatever the machine has).
	Variant    string `json:"variant"`
	Op         string `json:"op"`
	K          int    `json:"k"`
	M          int    `json:"m"`
	Bytes      int    `json:"bytes"`
	Lost       int    `json:"lost"`
	Iterations int    `json:"iterations"`
}

// subject is a code with its shards, kept between requests so that only the calls are timed.
type subject struct {
	code   reedsolomon.Encoder
	shards [][]byte
}

// answer reads requests until the input ends, and writes microseconds per call for each.
func answer(in io.Reader, out io.Writer) error {
	subjects := map[string]*subject{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return err
		}
		key := fmt.Sprint(r.Variant, r.K, r.M, r.Bytes)
		if subjects[key] == nil {
			made, err := newSubject(r)
			if err != nil {
				return err
			}
			subjects[key] = made
		}
		us, err := subjects[key].measure(r)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%.3f\n", us)
	}
	return lines.Err()
}

func newSubject(r request) (*subject, error) {
	options := []reedsolomon.Option{reedsolomon.WithMaxGoroutines(1)}
	if r.Variant == "avx2" {
		options = append(options, reedsolomon.WithGFNI(false), reedsolomon.WithAVXGFNI(false), reedsolomon.WithAVX512(false))
	}
	code, err := reedsolomon.New(r.K, r.M, options...)
	if err != nil {
		return nil, err
	}
	shards := makeShards(rand.New(rand.NewSource(1)), r.K, r.M, (r.Bytes+r.K-1)/r.K)
	return &subject{code, shards}, code.Encode(shards)
}

func (s *subject) measure(r request) (float64, error) {
	start := time.Now()
	for i := 0; i < r.Iterations; i++ {
		if r.Op == "encode" {
			if err := s.code.Encode(s.shards); err != nil {
				return 0, err
			}
			continue
		}
		for lost := 0; lost < r.Lost; lost++ {
			s.shards[lost] = s.shards[lost][:0]
		}
		if err := s.code.ReconstructData(s.shards); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(start).Nanoseconds()) / 1000 / float64(r.Iterations), nil
}
