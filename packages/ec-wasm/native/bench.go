package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand"
	"time"

	"github.com/klauspost/reedsolomon"
)

// request asks for one measurement: the mean time of `iterations` calls.
type request struct {
	// variant is "avx2" (no GFNI, no AVX-512) or "default" (whatever the machine has).
	variant, op                   string
	k, m, bytes, lost, iterations int
}

func parse(line string) (r request, err error) {
	_, err = fmt.Sscan(line, &r.variant, &r.op, &r.k, &r.m, &r.bytes, &r.lost, &r.iterations)
	return r, err
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
		r, err := parse(lines.Text())
		if err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		key := fmt.Sprint(r.variant, r.k, r.m, r.bytes)
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
	if r.variant == "avx2" {
		options = append(options, reedsolomon.WithGFNI(false), reedsolomon.WithAVXGFNI(false), reedsolomon.WithAVX512(false))
	}
	code, err := reedsolomon.New(r.k, r.m, options...)
	if err != nil {
		return nil, err
	}
	shards := makeShards(rand.New(rand.NewSource(1)), r.k, r.m, (r.bytes+r.k-1)/r.k)
	return &subject{code, shards}, code.Encode(shards)
}

func (s *subject) measure(r request) (float64, error) {
	start := time.Now()
	for i := 0; i < r.iterations; i++ {
		if r.op == "encode" {
			if err := s.code.Encode(s.shards); err != nil {
				return 0, err
			}
			continue
		}
		for lost := 0; lost < r.lost; lost++ {
			s.shards[lost] = s.shards[lost][:0]
		}
		if err := s.code.ReconstructData(s.shards); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(start).Nanoseconds()) / 1000 / float64(r.iterations), nil
}
