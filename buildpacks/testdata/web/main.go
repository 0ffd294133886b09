// Web answers with what it was started with. It speaks just enough HTTP by itself: compiling net/http for the first time
// takes longer than all else that the tests do.
package main

import (
	"bufio"
	"log"
	"net"
	"os"
	"strings"
)

func main() {
	listener, err := net.Listen("tcp", ":"+os.Getenv("PORT"))
	if err != nil {
		log.Fatal(err)
	}
	for {
		c, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		answer(c, "hello from "+os.Args[0]+", arguments: "+strings.Join(os.Args[1:], " "))
	}
}

// answer reads a request to its end, and replies.
func answer(c net.Conn, text string) {
	defer c.Close()
	lines := bufio.NewScanner(c)
	for lines.Scan() && lines.Text() != "" {
	}
	c.Write([]byte("HTTP/1.0 200 OK\r\n\r\n" + text))
}
