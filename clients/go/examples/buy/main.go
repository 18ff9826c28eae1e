// Asks the agent's seller at a URL, unless clresolve denies it. The guard goes below the transport that pays; without
// one that pays, a 402 comes back as it is.
package main

import (
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"

	"clresolve/guard"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: buy URL")
	}
	transport, err := guard.New(http.DefaultTransport, guard.Config{
		Daemon: "http://127.0.0.1:8402",
		Agent:  "summarizeagent.eth",
		Verb:   "summarize",
	})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	answer, err := client.Get(os.Args[1])
	var refusal *guard.Error
	if errors.As(err, &refusal) {
		log.Fatalf("%s %v", refusal.Code, refusal.Codes)
	}
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	fmt.Println(answer.Status)
}
