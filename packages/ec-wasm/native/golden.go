package main

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"math/rand"

	"github.com/klauspost/reedsolomon"
)

type vector struct {
	K      int      `json:"k"`
	Data   []string `json:"data"`
	Parity []string `json:"parity"`
}

// Shapes (k, parity rows, bytes): the common codes with their functional chunks (k more rows), both ends of the field, and
// a length that fills no vector.
var shapes = [][3]int{{1, 3, 5}, {2, 4, 16}, {4, 6, 33}, {9, 12, 17}, {10, 14, 16}, {12, 16, 8}, {3, 253, 2}, {17, 5, 31}, {200, 56, 3}}

func writeGolden(out io.Writer) error {
	random := rand.New(rand.NewSource(1))
	document := struct {
		Source  string   `json:"source"`
		Vectors []vector `json:"vectors"`
	}{Source: "github.com/klauspost/reedsolomon, default matrix"}
	for _, shape := range shapes {
		k, m, bytes := shape[0], shape[1], shape[2]
		code, err := reedsolomon.New(k, m)
		if err != nil {
			return err
		}
		shards := makeShards(random, k, m, bytes)
		if err := code.Encode(shards); err != nil {
			return err
		}
		document.Vectors = append(document.Vectors, vector{K: k, Data: toHex(shards[:k]), Parity: toHex(shards[k:])})
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	return encoder.Encode(document)
}

func makeShards(random *rand.Rand, k, m, bytes int) [][]byte {
	shards := make([][]byte, k+m)
	for i := range shards {
		shards[i] = make([]byte, bytes)
		if i < k {
			random.Read(shards[i])
		}
	}
	return shards
}

func toHex(shards [][]byte) []string {
	texts := make([]string, len(shards))
	for i, shard := range shards {
		texts[i] = hex.EncodeToString(shard)
	}
	return texts
}
