// Command writer is what the tests of logs run: it writes numbered lines as fast as it can, and then what it is asked to do.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	name := os.Args[1]
	count, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	out := bufio.NewWriter(os.Stdout)
	for n := range count {
		fmt.Fprintf(out, "%s %s %d of %d %s\n", name, os.Getenv("CF_INSTANCE_INDEX"), n, count, strings.Repeat("x", n%100))
	}
	if err := out.Flush(); err != nil {
		panic(err)
	}
	if len(os.Args) > 3 { // die after a while
		after, err := time.ParseDuration(os.Args[3])
		if err != nil {
			panic(err)
		}
		time.Sleep(after)
		fmt.Println(name, os.Getenv("CF_INSTANCE_INDEX"), "dies at", time.Now().UnixNano())
		os.Exit(3)
	}
	time.Sleep(time.Hour)
}
