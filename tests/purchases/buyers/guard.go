// Sends requests through the guard in Go: those that come on the standard input, one a line (go.mjs). A line with a guard
// makes a new one.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"clresolve/guard"
)

type question struct {
	Guard   *options          `json:"guard"`
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

type options struct {
	Daemon  string        `json:"daemon"`
	Agent   string        `json:"agent"`
	Name    string        `json:"name"`
	Verb    string        `json:"verb"`
	Timeout time.Duration `json:"timeout"` // in milliseconds
	Signer  *struct {
		Issuer string          `json:"issuer"`
		JWKS   json.RawMessage `json:"jwks"`
	} `json:"signer"`
}

type answer struct {
	Status  int               `json:"status,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	Paid    *guard.Paid       `json:"paid,omitempty"`
	Refused guard.Code        `json:"refused,omitempty"`
	Codes   []string          `json:"codes,omitempty"`
	Failed  string            `json:"failed,omitempty"`
}

func main() {
	questions, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	var transport *guard.Transport
	var paid *guard.Paid
	for {
		var asked question
		err := questions.Decode(&asked)
		if err == io.EOF {
			return
		}
		must(err)
		if asked.Guard != nil {
			transport = newGuard(*asked.Guard, func(one guard.Paid) { paid = &one })
			must(answers.Encode(answer{}))
			continue
		}
		paid = nil
		end := endOf(send(transport, asked))
		end.Paid = paid
		must(answers.Encode(end))
	}
}

func newGuard(options options, onPaid func(guard.Paid)) *guard.Transport {
	config := guard.Config{Daemon: options.Daemon, Agent: options.Agent, Name: options.Name, Verb: options.Verb}
	config.OnPaid = onPaid
	config.Timeout = options.Timeout * time.Millisecond
	if signer := options.Signer; signer != nil {
		keys, err := guard.ParseKeys(signer.JWKS)
		must(err)
		config.Signer = &guard.Signer{Issuer: signer.Issuer, Keys: keys}
	}
	transport, err := guard.New(nil, config)
	must(err)
	return transport
}

func send(transport *guard.Transport, asked question) (answer, error) {
	request, err := http.NewRequest(asked.Method, asked.URL, strings.NewReader(asked.Body))
	if err != nil {
		return answer{}, err
	}
	for name, value := range asked.Headers {
		request.Header.Set(name, value)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	headers := map[string]string{}
	for name, values := range response.Header {
		headers[name] = strings.Join(values, ", ")
	}
	return answer{Status: response.StatusCode, Headers: headers, Body: string(body)}, err
}

func endOf(end answer, err error) answer {
	var refusal *guard.Error
	switch {
	case errors.As(err, &refusal):
		return answer{Refused: refusal.Code, Codes: refusal.Codes}
	case err != nil:
		return answer{Failed: err.Error()}
	}
	return end
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
