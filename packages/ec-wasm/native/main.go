// Command native runs github.com/klauspost/reedsolomon, the yardstick and second implementation of the codec.
//
//	go run . golden > ../golden/vectors.json   parities of fixed data, checked by the Rust and the TypeScript tests
//	                                           (prettier then formats the file)
//	go run . bench                             answers measurements, one request and one number a line
package main

import (
	"fmt"
	"os"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "golden":
		err = writeGolden(os.Stdout)
	case len(os.Args) == 2 && os.Args[1] == "bench":
		err = answer(os.Stdin, os.Stdout)
	default:
		err = fmt.Errorf("usage: native golden|bench")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "native:", err)
		os.Exit(1)
	}
}
