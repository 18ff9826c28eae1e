package guard_test

import (
	"errors"
	"fmt"
	"net/http"

	"clresolve/guard"
)

// The transport goes below the one that pays. Without one that pays, a 402 comes back as it is.
func Example() {
	transport, err := guard.New(http.DefaultTransport, guard.Config{
		Daemon: "http://127.0.0.1:8402",
		Agent:  "summarizeagent.eth",
		Verb:   "summarize",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: transport}
	answer, err := client.Get("https://api.example/summarize")
	var refusal *guard.Error
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Code, refusal.Codes)
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	fmt.Println(answer.Status)
}
